import type { Exit } from '@atoll/cluster';
import { podUsageTold } from '@atoll/contracts/billing';
import { DurableMachine, StepFailed, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { UsageTeller } from '@atoll/team-directory';
import { spreadMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseClock } from '../clock/database-clock.js';
import { Clusters } from '../cluster/clusters.js';
import { endRun, isSeenOver, observeRun, recordOutstandingEnd, type RunOf } from '../cluster/runs.js';
import { stepError, troubleError } from '../cluster/step-errors.js';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { AllowedImages } from '../images/allowed-images.js';
import { minutes } from '../limits/minutes.js';
import { PodDeadlines } from '../limits/pod-deadlines.js';
import { PodsSettings } from '../pods-settings.js';
import { countsSince, endOfRun } from '../usage/end-of-run.js';
import { heldOfPod } from '../usage/held.js';
import { LateEnds } from '../usage/late-ends.js';
import { MountableVolumes } from '../volumes/mountable-volumes.js';
import type { PodEntity } from '../model/pod.entity.js';
import { podMachine, type PodEvent, type PodState } from '../model/pod.machine.js';
import { atRest, endings } from '../model/run-states.js';
import { shownError } from '../model/shown-error.js';
import { afterEnd, endOfSubscription } from './pod-end.js';
import { PodStarts } from './pod-start.js';

type Found = Outcome<PodEntity, PodEvent>;

const lookAgainMs = 500;
/** Of what runs, by itself; hints and sweeps look sooner. */
const reviewMs = 600_000;
const graceMs = 10_000;
const self = { actor: 'system:pods' };

/** Pods: their workload first, then their run in the cluster; at the end the run first, then the workload. */
@Injectable()
export class PodSteps extends DurableMachine<PodEntity, PodState, PodEvent> {
  /** Those that wait for one cluster hold up nobody who waits for another. */
  protected readonly lanes = `ARRAY[gpuaas_id::text]`;
  override readonly owner = 'team_id';

  constructor(
    dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly starts: PodStarts,
    private readonly images: AllowedImages,
    private readonly volumes: MountableVolumes,
    private readonly usage: UsageTeller,
    private readonly lateEnds: LateEnds,
    private readonly exposures: ExposureSteps,
    private readonly deadlines: PodDeadlines,
    private readonly settings: PodsSettings,
    private readonly clock: DatabaseClock,
  ) {
    super(dataSource, podMachine);
  }

  async step(pod: PodEntity, context: StepContext): Promise<Found> {
    const isEnding = endings.has(pod.state);
    try {
      if (isEnding) return await this.end(pod, context);
      if (pod.state === 'pending') return await this.place(pod);
      if (atRest.has(pod.state)) return 'rest';
      const isTimeOver = (await this.deadlines.nextLookMs(pod)) === 0;
      if (isTimeOver && !(await this.hasEnded(pod, context))) return this.stopAfterDuration(pod);
      if (pod.state === 'pulling') return await this.begin(pod, context);
      if (pod.state === 'restarting') return await this.again(pod, context);
      return await this.review(pod, context);
    } catch (error) {
      throw stepError(error, isEnding);
    }
  }

  protected override async entered(
    manager: EntityManager,
    pod: PodEntity,
    { from, event }: Passage<PodState, PodEvent>,
  ): Promise<void> {
    const { podId, run, start, gpuaasId } = pod;
    if (event === 'FAILED' && endings.has(from)) await recordOutstandingEnd(manager, pod, { ...refOf(pod), start });
    if (event === 'FAILED' && from !== 'failing')
      await manager.query('UPDATE pod SET failure = last_error WHERE pod_id = $1', [podId]);
    switch (pod.state as PodState) {
      case 'pulling':
        await manager.query('INSERT INTO pod_run (pod_id, run, gpuaas_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
          podId,
          run,
          gpuaasId,
        ]);
        if (from === 'restarting') await endRuns(manager, podId, run - 1);
        return;
      case 'running':
        return this.bill(manager, [pod], from, true);
      case 'stopping':
      case 'completing':
      case 'failing':
      case 'deleting':
        return this.ending(manager, [pod], from);
      case 'deleted':
        await manager.query(`UPDATE pod SET sealed_env = NULL, command = '[]' WHERE pod_id = $1`, [podId]);
        return endRuns(manager, podId, run);
      case 'stopped':
      case 'failed':
        return endRuns(manager, podId, run);
      default:
        return;
    }
  }

  /** By few statements for any number: while a team with thousands of pods is deleted, others wait for the rows. */
  protected override async enteredAll(
    manager: EntityManager,
    pods: readonly PodEntity[],
    passage: Passage<PodState, PodEvent>,
  ): Promise<void> {
    if (passage.event === 'DELETE') return this.ending(manager, pods, passage.from);
    return super.enteredAll(manager, pods, passage);
  }

  private async ending(manager: EntityManager, pods: readonly PodEntity[], from: PodState): Promise<void> {
    await this.exposures.deleteOf(
      manager,
      pods.map(({ podId }) => podId),
      'Its pod ends.',
    );
    return this.bill(manager, pods, from, false);
  }

  /** Pods that come from one state. */
  private async bill(
    manager: EntityManager,
    pods: readonly PodEntity[],
    from: PodState,
    isRunning: boolean,
  ): Promise<void> {
    const changed = pods.filter(({ isBilled }) => isBilled !== isRunning);
    if (changed.length === 0) return;
    const held = changed.map((pod) => ({ ...heldOfPod(pod, isRunning ? 1 : 0), at: countsSince(from, pod) }));
    await this.usage.tell(manager, podUsageTold, held);
    await manager.query('UPDATE pod SET is_billed = $2 WHERE pod_id = ANY ($1::uuid[])', [
      changed.map(({ podId }) => podId),
      isRunning,
    ]);
  }

  /** Has its workload, the image that is allowed now, and volumes that can be mounted. */
  private async place(pod: PodEntity): Promise<Found> {
    const reference = await this.images.require(pod.teamId, pod.image, pod.requestId);
    await this.volumes.require(pod, pod.volumes);
    const { status, reason, slices, cluster_setting } = await this.starts.workload(pod);
    if (status === 'waiting' || status === 'pending') {
      return { againAfterMs: lookAgainMs, reason: { code: status, message: reason ?? 'Waiting for a GPU.' } };
    }
    // Its own reason is what the workload itself waits for.
    if (status === 'stopping' || status === 'stopped')
      return this.moving('STOP', { ...self, reason: endOfSubscription }, () => ({ endReason: endOfSubscription }));
    if (status === 'failed')
      throw new StepFailed('workload_ended', reason ?? 'The workload ended before the pod could start.', true);
    await this.clusters.requireSetting(pod.gpuaasId, cluster_setting);
    return this.moving('PLACED', self, (row) => ({ slices, reference, run: row.run + 1, mounted: row.volumes }));
  }

  /** Requests its run until the cluster has it running. */
  private async begin(pod: PodEntity, context: StepContext): Promise<Found> {
    await this.volumes.require(pod, pod.mounted);
    const driver = await this.clusters.driverOf(pod.gpuaasId);
    await driver.startPod(this.starts.runOf(pod), () => this.isWanted(pod, context), context.signal);
    const sight = await observeRun(driver, refOf(pod), context.signal);
    if (sight.phase === 'running') return this.started(pod, sight.startedAt);
    // It was quicker than this look: its end is that of a run like any other.
    if (sight.phase === 'ended') return this.started(pod, sight.startedAt ?? sight.exit.at);
    if (sight.phase !== 'preparing') return { againAfterMs: lookAgainMs };
    const { trouble } = sight;
    if (trouble) throw troubleError(trouble);
    return { againAfterMs: lookAgainMs };
  }

  /**
   * By the database: once false, it stays so, since no run comes twice. Throws where it is wanted and the claim may
   * have run out, by the clock of this process, which may have been frozen until the answer came: another one may have
   * started the run since, and it may have ended.
   */
  private async isWanted({ podId, run }: PodEntity, context: StepContext): Promise<boolean> {
    const [pod] = await this.query<{ state: PodState }>(
      `SELECT state FROM pod WHERE pod_id = $1 AND run = $2 AND state IN ('pulling', 'running')`,
      [podId, run],
    );
    // What another process has brought to run is wanted, and is not to be removed for its sake.
    if (pod?.state === 'pulling') context.signal.throwIfAborted();
    return pod !== undefined;
  }

  /** Its longest duration counts from when it was seen, where the clock of its cluster cannot be right. */
  private async started({ enteredAt }: PodEntity, startedAt: Date): Promise<Found> {
    const seenAt = new Date(await this.clock.nowMs());
    const sinceMs = (startedAt < enteredAt || startedAt > seenAt ? seenAt : startedAt).getTime();
    return this.moving('STARTED', self, (row) => ({
      startedAt,
      endedAt: null,
      stopsAt:
        row.stopsAt ?? (row.maxDurationMinutes === null ? null : new Date(sinceMs + row.maxDurationMinutes * 60_000)),
    }));
  }

  private async review(pod: PodEntity, context: StepContext): Promise<Found> {
    const driver = await this.clusters.driverOf(pod.gpuaasId);
    const sight = await observeRun(driver, refOf(pod), context.signal);
    if (sight.phase === 'ended' || sight.phase === 'absent') {
      const exit = sight.phase === 'ended' ? sight.exit : null;
      const { event, values } = afterEnd(pod, exit, this.settings.restartMs, await this.clock.nowMs());
      const error = event === 'FAILED' ? { code: 'ended', message: values.endReason } : null;
      const cause = { ...self, reason: values.endReason };
      return this.moving(event, cause, (row) => ({ ...values, endedAt: endOfRun(row, exit) }), error);
    }
    const nextLookMs = await this.deadlines.nextLookMs(pod);
    return { againAfterMs: sight.phase === 'running' ? Math.min(nextLookMs, spreadMs(reviewMs)) : lookAgainMs };
  }

  /** Whether its run has ended by itself: a pod whose longest duration is over is not stopped then. */
  private async hasEnded(pod: PodEntity, context: StepContext): Promise<boolean> {
    if (pod.state !== 'running') return false;
    return isSeenOver(() => this.clusters.driverOf(pod.gpuaasId), refOf(pod), context.signal);
  }

  private stopAfterDuration({ maxDurationMinutes }: PodEntity): Found {
    const endReason = `It was stopped after ${minutes(maxDurationMinutes ?? 0)}, its maximum duration.`;
    return this.moving('STOP', { ...self, reason: endReason }, () => ({ endReason }));
  }

  private async again(pod: PodEntity, context: StepContext): Promise<Found> {
    if (!(await this.goneRun(pod, context))) return { againAfterMs: lookAgainMs };
    const leftMs = (pod.nextRunAt?.getTime() ?? 0) - (await this.clock.nowMs());
    if (leftMs > 0) return { againAfterMs: Math.min(leftMs, await this.deadlines.nextLookMs(pod)) };
    const reference = await this.images.require(pod.teamId, pod.image, pod.requestId);
    return this.moving('AGAIN', self, (row) => ({
      run: row.run + 1,
      restarts: row.restarts + 1,
      reference,
      mounted: row.volumes,
      nextRunAt: null,
    }));
  }

  /** The run ends, then its workload: no slice is given on while something still uses it. */
  private async end(pod: PodEntity, context: StepContext): Promise<Found> {
    const last = await this.goneRun(pod, context);
    if (!last) return { againAfterMs: lookAgainMs };
    await this.starts.endWorkload(pod);
    const why = pod.state === 'failing' ? shownError(pod) : null;
    return this.moving('GONE', self, (row) => ({ exitCode: last.exit?.code ?? row.exitCode }), why);
  }

  /** The run that is over, with its exit where the cluster knows it. Requests its end where it is not. */
  private async goneRun(pod: PodEntity, context: StepContext): Promise<{ exit: Exit | null } | undefined> {
    if (pod.run === 0) return { exit: null };
    const over = await endRun(await this.clusters.driverOf(pod.gpuaasId), refOf(pod), graceMs, context);
    if (over) await this.lateEnds.tell(pod, over.exit);
    return over;
  }
}

function refOf({ podId, run }: PodEntity): RunOf {
  return { kind: 'pod', id: podId, run };
}

async function endRuns(manager: EntityManager, podId: string, upTo: number): Promise<void> {
  await manager.query(
    'UPDATE pod_run SET ended_at = clock_timestamp() WHERE pod_id = $1 AND run <= $2 AND ended_at IS NULL',
    [podId, upTo],
  );
}
