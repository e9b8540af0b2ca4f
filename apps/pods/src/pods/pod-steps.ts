import { podUsageTold } from '@atoll/contracts/billing';
import { StepFailed, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { UsageTeller } from '@atoll/team-directory';
import { spreadMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseClock } from '../clock/database-clock.js';
import { Clusters } from '../cluster/clusters.js';
import { lookAgainMs, RunSteps } from '../cluster/run-steps.js';
import { isSeenOver, type RunOf } from '../cluster/runs.js';
import { self } from '../cluster/steps-on-cluster.js';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { AllowedImages } from '../images/allowed-images.js';
import { minutes } from '../limits/minutes.js';
import { PodDeadlines } from '../limits/pod-deadlines.js';
import { PodsSettings } from '../pods-settings.js';
import { countsSince } from '../usage/end-of-run.js';
import { heldOfPod } from '../usage/held.js';
import { LateEnds } from '../usage/late-ends.js';
import { MountableVolumes } from '../volumes/mountable-volumes.js';
import type { PodEntity } from '../model/pod.entity.js';
import { podMachine, type PodEvent, type PodState } from '../model/pod.machine.js';
import { atRest, endings } from '../model/run-states.js';
import { afterEnd, endOfSubscription } from './pod-end.js';
import { PodStarts } from './pod-start.js';

type Found = Outcome<PodEntity, PodEvent>;

/** Of what runs, by itself; hints and sweeps look sooner. */
const reviewMs = 600_000;

/** Pods: their workload first, then their run in the cluster; at the end the run first, then the workload. */
@Injectable()
export class PodSteps extends RunSteps<PodEntity, PodState, PodEvent> {
  protected readonly what = 'pod';
  protected readonly graceMs = 10_000;
  protected readonly afterEnd = afterEnd;

  constructor(
    dataSource: DataSource,
    protected readonly clusters: Clusters,
    private readonly starts: PodStarts,
    private readonly images: AllowedImages,
    private readonly volumes: MountableVolumes,
    private readonly usage: UsageTeller,
    protected readonly lateEnds: LateEnds,
    private readonly exposures: ExposureSteps,
    private readonly deadlines: PodDeadlines,
    protected readonly settings: PodsSettings,
    protected readonly clock: DatabaseClock,
  ) {
    super(dataSource, podMachine);
  }

  protected async work(pod: PodEntity, context: StepContext): Promise<Found> {
    if (endings.has(pod.state)) return this.end(pod, context);
    if (pod.state === 'pending') return this.place(pod);
    if (atRest.has(pod.state)) return 'rest';
    const isTimeOver = (await this.deadlines.nextLookMs(pod)) === 0;
    if (isTimeOver && !(await this.hasEnded(pod, context))) return this.stopAfterDuration(pod);
    if (pod.state === 'pulling') return this.begin(pod, context);
    if (pod.state === 'restarting') return this.again(pod, context);
    return this.review(pod, context);
  }

  protected override async entered(
    manager: EntityManager,
    pod: PodEntity,
    passage: Passage<PodState, PodEvent>,
  ): Promise<void> {
    await super.entered(manager, pod, passage);
    const { from } = passage;
    const { podId, run, gpuaasId } = pod;
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
    const startedAt = await this.startOf(driver, pod, context);
    return startedAt ? this.started(pod, startedAt) : { againAfterMs: lookAgainMs };
  }

  protected refOf({ podId, run }: PodEntity): RunOf {
    return { kind: 'pod', id: podId, run };
  }

  protected wantedStates({ podId, run }: PodEntity): Promise<{ state: string }[]> {
    const query = `SELECT state FROM pod WHERE pod_id = $1 AND run = $2 AND state IN ('pulling', 'running')`;
    return this.query<{ state: string }>(query, [podId, run]);
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

  protected async reviewRunning(pod: PodEntity): Promise<Found> {
    return { againAfterMs: Math.min(await this.deadlines.nextLookMs(pod), spreadMs(reviewMs)) };
  }

  /** Whether its run has ended by itself: a pod whose longest duration is over is not stopped then. */
  private async hasEnded(pod: PodEntity, context: StepContext): Promise<boolean> {
    if (pod.state !== 'running') return false;
    return isSeenOver(() => this.clusters.driverOf(pod.gpuaasId), this.refOf(pod), context.signal);
  }

  private stopAfterDuration({ maxDurationMinutes }: PodEntity): Found {
    const endReason = `It was stopped after ${minutes(maxDurationMinutes ?? 0)}, its maximum duration.`;
    return this.moving('STOP', { ...self, reason: endReason }, () => ({ endReason }));
  }

  private async again(pod: PodEntity, context: StepContext): Promise<Found> {
    if (!(await this.overRun(pod, context))) return { againAfterMs: lookAgainMs };
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
    const last = await this.overRun(pod, context);
    if (!last) return { againAfterMs: lookAgainMs };
    await this.starts.endWorkload(pod);
    const exitOf = (row: PodEntity) => ({ exitCode: last.exit?.code ?? row.exitCode });
    return this.moving('GONE', self, exitOf, this.whyFailing(pod));
  }
}

async function endRuns(manager: EntityManager, podId: string, upTo: number): Promise<void> {
  await manager.query(
    'UPDATE pod_run SET ended_at = clock_timestamp() WHERE pod_id = $1 AND run <= $2 AND ended_at IS NULL',
    [podId, upTo],
  );
}
