import { createHash } from 'node:crypto';
import type { ClusterDriver, VmRun } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { vmChanged } from '@atoll/contracts/pods';
import { Outbox } from '@atoll/events';
import { DurableMachine, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { UsageTeller } from '@atoll/team-directory';
import { spreadMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseClock } from '../clock/database-clock.js';
import { Clusters } from '../cluster/clusters.js';
import { endRun, observeRun, recordOutstandingEnd, type RunOf } from '../cluster/runs.js';
import { stepError, troubleError } from '../cluster/step-errors.js';
import { AllowedImages } from '../images/allowed-images.js';
import { PodsSettings } from '../pods-settings.js';
import { countsSince, endOfRun } from '../usage/end-of-run.js';
import { heldOfVm } from '../usage/held.js';
import { LateEnds } from '../usage/late-ends.js';
import { afterEndWithoutRestart, afterGuestEnd } from './vm-end.js';
import { VmKeys } from './vm-keys.js';
import { MountableVolumes } from '../volumes/mountable-volumes.js';
import { endings } from '../model/run-states.js';
import { shownError } from '../model/shown-error.js';
import type { VmEntity } from '../model/vm.entity.js';
import { vmMachine, type VmEvent, type VmState } from '../model/vm.machine.js';

type Found = Outcome<VmEntity, VmEvent>;

const lookAgainMs = 500;
/** Of what runs, by itself; sweeps look sooner. */
const reviewMs = 600_000;
const graceMs = 30_000;
/** That are looked for on a cluster. There are more only after as many restarts during one start. */
const mostEarlierRuns = 100;
/** Of an integer: ids of facts that are equally late are in order as texts. */
const digitsOfTold = 10;
const self = { actor: 'system:pods' };

/** VMs: started, started again where their guest stops by itself, and ended. */
@Injectable()
export class VmSteps extends DurableMachine<VmEntity, VmState, VmEvent> {
  protected readonly lanes = `ARRAY[gpuaas_id::text]`;
  override readonly owner = 'team_id';

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly images: AllowedImages,
    private readonly volumes: MountableVolumes,
    private readonly keys: VmKeys,
    private readonly usage: UsageTeller,
    private readonly lateEnds: LateEnds,
    private readonly outbox: Outbox,
    private readonly settings: PodsSettings,
    private readonly clock: DatabaseClock,
  ) {
    super(dataSource, vmMachine);
  }

  async step(vm: VmEntity, context: StepContext): Promise<Found> {
    const isEnding = endings.has(vm.state);
    try {
      if (isEnding) return await this.end(vm, context);
      if (vm.state === 'starting') return await this.begin(vm, context);
      if (vm.state === 'restarting') return await this.again(vm, context);
      return vm.state === 'running' ? await this.review(vm, context) : 'rest';
    } catch (error) {
      throw stepError(error, isEnding);
    }
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
    const shown = {
      instance_id: instanceId,
      revision,
      team_id: teamId,
      name,
      is_running: state === 'running',
    };
    await this.outbox.add(manager, vmChanged, { ...shown, created_at: createdAt.toISOString() });
    return revision;
  }

  protected override async entered(
    manager: EntityManager,
    vm: VmEntity,
    { from, event }: Passage<VmState, VmEvent>,
  ): Promise<void> {
    if (event === 'FAILED' && endings.has(from)) await recordOutstandingEnd(manager, vm, { ...refOf(vm), start: 0 });
    if (event === 'FAILED' && from !== 'failing')
      await manager.query('UPDATE vm SET failure = last_error WHERE instance_id = $1', [vm.instanceId]);
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
    await driver.startVm(runOf(vm, keys), () => this.isWanted(vm, context), context.signal);
    const sight = await observeRun(driver, refOf(vm), context.signal);
    // What has ended already was quicker than this look: its end is that of a run like any other.
    if (sight.phase === 'running' || sight.phase === 'ended') {
      await this.removeEarlier(driver, vm, context);
      const startedAt = sight.phase === 'running' ? sight.startedAt : (sight.startedAt ?? sight.exit.at);
      return this.moving('STARTED', self, () => ({ startedAt, endedAt: null, placedKeys: placed(keys) }));
    }
    const trouble = sight.phase === 'preparing' ? sight.trouble : null;
    if (trouble) throw troubleError(trouble);
    return { againAfterMs: lookAgainMs };
  }

  /**
   * As of pods: false from the moment on at which its run is to end. Throws where it is not, and another process may be
   * at it.
   */
  private async isWanted({ instanceId, run }: VmEntity, context: StepContext): Promise<boolean> {
    const [vm] = await this.query<{ state: VmState }>(
      `SELECT state FROM vm WHERE instance_id = $1 AND run = $2 AND state IN ('starting', 'running')`,
      [instanceId, run],
    );
    if (vm?.state === 'starting') context.signal.throwIfAborted();
    return vm !== undefined;
  }

  private async review(vm: VmEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(vm.gpuaasId);
    const sight = await observeRun(driver, refOf(vm), context.signal);
    if (sight.phase === 'running') return this.tellKeys(driver, vm, context);
    if (sight.phase !== 'ended' && sight.phase !== 'absent') return { againAfterMs: lookAgainMs };
    const exit = sight.phase === 'ended' ? sight.exit : null;
    const nowMs = await this.clock.nowMs();
    return {
      decide: async (manager, row) => {
        const { event, values } = afterGuestEnd(row, exit, this.settings.restartMs, nowMs);
        const error = event === 'FAILED' ? { code: 'ended', message: values.endReason } : null;
        const endedAt = endOfRun(row, exit);
        await this.move(manager, row, event, { ...self, reason: values.endReason }, { ...values, endedAt }, error);
        return true;
      },
    };
  }

  private async tellKeys(driver: ClusterDriver, vm: VmEntity, context: StepContext): Promise<Found> {
    const keys = await this.keys.of(vm.teamId);
    if (placed(keys) === vm.placedKeys) return { againAfterMs: spreadMs(reviewMs) };
    // A run that has gone since is not begun anew for it.
    await driver.startVm(runOf(vm, keys), () => Promise.resolve(false), context.signal);
    return { againAfterMs: spreadMs(reviewMs), values: { placedKeys: placed(keys) } };
  }

  private async again(vm: VmEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(vm.gpuaasId);
    if (!(await this.hasGone(vm, driver, context))) return { againAfterMs: lookAgainMs };
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

  /** Whether its run is over. Requests its end where it is not. */
  private async hasGone(vm: VmEntity, driver: ClusterDriver, context: StepContext): Promise<boolean> {
    const over = await endRun(driver, refOf(vm), graceMs, context);
    if (over) await this.lateEnds.tell(vm, over.exit);
    return over !== undefined;
  }

  /**
   * Requests the removal of the runs before the present one, and says whether there were any. Several are left by a VM
   * that was restarted while it was starting: none is removed before a later run has its disk.
   */
  private async removeEarlier(driver: ClusterDriver, vm: VmEntity, context: StepContext): Promise<boolean> {
    const count = Math.min(vm.run - 1, mostEarlierRuns);
    const refs = Array.from({ length: count }, (_, at) => refOf(vm, vm.run - count + at));
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
        await this.move(
          manager,
          row,
          event,
          { ...self, reason: message },
          {},
          event === 'FAILED' ? { code: 'ended', message } : null,
        );
      },
    };
  }

  /** A VM that is deleted is removed with its disk; one that has stopped keeps both. */
  private async end(vm: VmEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(vm.gpuaasId);
    if (!(await this.hasGone(vm, driver, context))) return { againAfterMs: lookAgainMs };
    if (vm.state === 'deleting') {
      if (await this.removeEarlier(driver, vm, context)) return { againAfterMs: lookAgainMs };
      await driver.remove(refOf(vm), context.signal);
      if ((await observeRun(driver, refOf(vm), context.signal)).phase !== 'absent')
        return { againAfterMs: lookAgainMs };
    }
    const why = vm.state === 'failing' ? shownError(vm) : null;
    return { event: 'GONE', ...(why && { reason: why }) };
  }
}

function refOf({ instanceId, run }: Pick<VmEntity, 'instanceId' | 'run'>, ofRun = run): RunOf {
  return { kind: 'vm', id: instanceId, run: ofRun };
}

/** A digest, which has one length: the row stays for ever, and each listing reads it. */
const placed = (keys: readonly string[]): string =>
  keys.length === 0 ? '' : createHash('sha256').update(keys.join('\n')).digest('hex');

function runOf(vm: VmEntity, sshKeys: readonly string[]): VmRun {
  return {
    ref: refOf(vm),
    owner: { teamId: vm.teamId, workspaceId: vm.workspaceId },
    name: vm.name,
    image: vm.reference,
    vcpus: vm.vcpus,
    memoryGb: Number(vm.memoryGb),
    volumes: vm.volumes.map(({ volume_id, path }) => ({ volumeId: volume_id, path })),
    sshKeys,
  };
}
