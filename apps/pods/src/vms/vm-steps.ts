import { createHash } from 'node:crypto';
import type { ClusterDriver, VmRun } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { vmChanged } from '@atoll/contracts/pods';
import { Outbox } from '@atoll/events';
import type { Outcome, Passage, StepContext } from '@atoll/state-machine';
import { UsageTeller } from '@atoll/team-directory';
import { spreadMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseClock } from '../clock/database-clock.js';
import { Clusters } from '../cluster/clusters.js';
import { lookAgainMs, RunSteps } from '../cluster/run-steps.js';
import { observeRun, type RunOf } from '../cluster/runs.js';
import { self } from '../cluster/steps-on-cluster.js';
import { AllowedImages } from '../images/allowed-images.js';
import { PodsSettings } from '../pods-settings.js';
import { countsSince } from '../usage/end-of-run.js';
import { heldOfVm } from '../usage/held.js';
import { LateEnds } from '../usage/late-ends.js';
import { afterEndWithoutRestart, afterGuestEnd } from './vm-end.js';
import { VmKeys } from './vm-keys.js';
import { MountableVolumes } from '../volumes/mountable-volumes.js';
import { endings } from '../model/run-states.js';
import type { VmEntity } from '../model/vm.entity.js';
import { vmMachine, type VmEvent, type VmState } from '../model/vm.machine.js';

type Found = Outcome<VmEntity, VmEvent>;

/** Of what runs, by itself; sweeps look sooner. */
const reviewMs = 600_000;
/** That are looked for on a cluster. There are more only after as many restarts during one start. */
const mostEarlierRuns = 100;
/** Of an integer: ids of facts that are equally late are in order as texts. */
const digitsOfTold = 10;

/** VMs: started, started again where their guest stops by itself, and ended. */
@Injectable()
export class VmSteps extends RunSteps<VmEntity, VmState, VmEvent> {
  protected readonly what = 'VM';
  protected readonly graceMs = 30_000;
  protected readonly afterEnd = afterGuestEnd;

  constructor(
    dataSource: DataSource,
    protected readonly clusters: Clusters,
    private readonly images: AllowedImages,
    private readonly volumes: MountableVolumes,
    private readonly keys: VmKeys,
    private readonly usage: UsageTeller,
    protected readonly lateEnds: LateEnds,
    private readonly outbox: Outbox,
    protected readonly settings: PodsSettings,
    protected readonly clock: DatabaseClock,
  ) {
    super(dataSource, vmMachine);
  }

  protected async work(vm: VmEntity, context: StepContext): Promise<Found> {
    if (endings.has(vm.state)) return this.end(vm, context);
    if (vm.state === 'starting') return this.begin(vm, context);
    if (vm.state === 'restarting') return this.again(vm, context);
    return vm.state === 'running' ? this.review(vm, context) : 'rest';
  }

  /**
   * For what other services show of it, the bill too: the name that it has now. What it is billed for stays as it is:
   * the fact is of the instant from which that holds, and comes behind the one that says so.
   */
  async tellName(manager: EntityManager, vm: VmEntity): Promise<void> {
    const told = await this.tell(manager, vm);
    const mark = `${vm.revision}.${String(told).padStart(digitsOfTold, '0')}`;
    await this.usage.tell(manager, podUsageTold, [{ ...heldOfVm(vm, vm.isBilled ? 1 : 0), mark }]);
  }

  /** For what other services show of it. Returns how often they were told. */
  private async tell(
    manager: EntityManager,
    { instanceId, teamId, name, state, createdAt }: VmEntity,
  ): Promise<number> {
    const [[row]] = await manager.query<[{ told: number }[], number]>(
      'UPDATE vm SET told = told + 1 WHERE instance_id = $1 RETURNING told',
      [instanceId],
    );
    const revision = row?.told ?? 0;
    const shown = { instance_id: instanceId, revision, team_id: teamId, name, is_running: state === 'running' };
    await this.outbox.add(manager, vmChanged, { ...shown, created_at: createdAt.toISOString() });
    return revision;
  }

  protected override async entered(
    manager: EntityManager,
    vm: VmEntity,
    passage: Passage<VmState, VmEvent>,
  ): Promise<void> {
    await super.entered(manager, vm, passage);
    const { from } = passage;
    const isRunning = vm.state === 'running';
    if (isRunning || from === 'running') await this.tell(manager, vm);
    if (vm.isBilled === isRunning) return;
    const held = { ...heldOfVm(vm, isRunning ? 1 : 0), at: countsSince(from, vm) };
    await this.usage.tell(manager, podUsageTold, [held]);
    await manager.query('UPDATE vm SET is_billed = $2 WHERE instance_id = $1', [vm.instanceId, isRunning]);
  }

  private async begin(vm: VmEntity, context: StepContext): Promise<Found> {
    await this.volumes.require(vm, vm.volumes);
    const driver = await this.clusters.driverOf(vm.gpuaasId);
    const keys = await this.keys.of(vm.teamId);
    await driver.startVm(this.runOf(vm, keys), () => this.isWanted(vm, context), context.signal);
    const startedAt = await this.startOf(driver, vm, context);
    if (!startedAt) return { againAfterMs: lookAgainMs };
    await this.removeEarlier(driver, vm, context);
    return this.moving('STARTED', self, () => ({ startedAt, endedAt: null, placedKeys: placed(keys) }));
  }

  protected refOf({ instanceId, run }: VmEntity): RunOf {
    return { kind: 'vm', id: instanceId, run };
  }

  protected wantedStates({ instanceId, run }: VmEntity): Promise<{ state: string }[]> {
    const query = `SELECT state FROM vm WHERE instance_id = $1 AND run = $2 AND state IN ('starting', 'running')`;
    return this.query<{ state: string }>(query, [instanceId, run]);
  }

  private runOf(vm: VmEntity, sshKeys: readonly string[]): VmRun {
    return {
      ref: this.refOf(vm),
      owner: { teamId: vm.teamId, workspaceId: vm.workspaceId },
      name: vm.name,
      image: vm.reference,
      vcpus: vm.vcpus,
      memoryGb: Number(vm.memoryGb),
      volumes: vm.volumes.map(({ volume_id, path }) => ({ volumeId: volume_id, path })),
      sshKeys,
    };
  }

  /** Its guest is told the keys that have changed. */
  protected async reviewRunning(vm: VmEntity, driver: ClusterDriver, context: StepContext): Promise<Found> {
    const keys = await this.keys.of(vm.teamId);
    if (placed(keys) === vm.placedKeys) return { againAfterMs: spreadMs(reviewMs) };
    // A run that has gone since is not begun anew for it.
    await driver.startVm(this.runOf(vm, keys), () => Promise.resolve(false), context.signal);
    return { againAfterMs: spreadMs(reviewMs), values: { placedKeys: placed(keys) } };
  }

  private async again(vm: VmEntity, context: StepContext): Promise<Found> {
    if (!(await this.overRun(vm, context))) return { againAfterMs: lookAgainMs };
    // A user’s restart waits for no instant.
    if (!vm.autoRestart && vm.nextRunAt) return this.notAgain();
    const leftMs = (vm.nextRunAt?.getTime() ?? 0) - (await this.clock.nowMs());
    if (leftMs > 0) return { againAfterMs: leftMs };
    const reference = await this.images.require(vm.teamId, vm.image, vm.requestId);
    return this.moving('AGAIN', self, (row) => ({
      run: row.run + 1,
      restarts: row.restarts + 1,
      reference,
      nextRunAt: null,
    }));
  }

  /**
   * Requests the removal of the runs before the present one, and says whether there were any. Several are left by a VM
   * that was restarted while it was starting: none is removed before a later run has its disk.
   */
  private async removeEarlier(driver: ClusterDriver, vm: VmEntity, context: StepContext): Promise<boolean> {
    const count = Math.min(vm.run - 1, mostEarlierRuns);
    const refs = Array.from({ length: count }, (_, at) => ({ ...this.refOf(vm), run: vm.run - count + at }));
    const sights = count > 0 ? await driver.observeVms(refs, context.signal) : [];
    const left = refs.filter((_ref, at) => sights[at]?.phase !== 'absent');
    for (const ref of left) await driver.remove(ref, context.signal);
    return left.length > 0;
  }

  private notAgain(): Found {
    return {
      decide: async (manager, row) => {
        // Its user has asked for the restart meanwhile.
        if (row.autoRestart) return this.park(manager, row, 0);
        const { event, message } = afterEndWithoutRestart(row);
        const error = event === 'FAILED' ? { code: 'ended', message } : null;
        await this.move(manager, row, event, { ...self, reason: message }, {}, error);
      },
    };
  }

  /** A VM that is deleted is removed with its disk; one that has stopped keeps both. */
  private async end(vm: VmEntity, context: StepContext): Promise<Found> {
    if (!(await this.overRun(vm, context))) return { againAfterMs: lookAgainMs };
    if (vm.state === 'deleting') {
      const driver = await this.clusters.driverOf(vm.gpuaasId);
      if (await this.removeEarlier(driver, vm, context)) return { againAfterMs: lookAgainMs };
      await driver.remove(this.refOf(vm), context.signal);
      if ((await observeRun(driver, this.refOf(vm), context.signal)).phase !== 'absent')
        return { againAfterMs: lookAgainMs };
    }
    return this.gone(vm, 'GONE');
  }
}

/** A digest, which has one length: the row stays for ever, and each listing reads it. */
const placed = (keys: readonly string[]): string =>
  keys.length === 0 ? '' : createHash('sha256').update(keys.join('\n')).digest('hex');
