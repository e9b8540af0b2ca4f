import { messageOf } from '@atoll/errors';
import { scenarioOf } from '@atoll/cluster';
import { maxPodsPerReading, podUsages, type PodUsage, type ReadPodUsage } from '@atoll/contracts/gpuaas';
import { type IdleStop } from '@atoll/contracts/pods';
import { nilId, Transactions } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseClock } from '../clock/database-clock.js';
import { self } from '../cluster/steps-on-cluster.js';
import { writePlatformLine } from '../logs/platform-lines.js';
import type { KeptIdleness } from '../model/idleness.js';
import type { PodEntity } from '../model/pod.entity.js';
import { PodSteps } from '../pods/pod-steps.js';
import { PodsSettings } from '../pods-settings.js';
import { afterLook, maxGapMs } from '../limits/idle-looks.js';
import { minutes } from '../limits/minutes.js';

/** Longer than the time between two looks, so that nothing between them is missed. */
const windowSeconds = 150;
const readingMs = 15_000;
/** What is missing for so long is not about to come: a source has its first figure of a slice by then. */
const unknownMs = 2 * maxGapMs;

interface Watched {
  readonly pod_id: string;
  readonly start: number;
  readonly pod_name: string;
  readonly image: string;
  readonly is_simulated: boolean;
}

/** Stops pods that do not use their own GPU slices for as long as their `idle_stop` says. */
@Injectable()
export class IdleWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(IdleWatch.name);
  private readonly rounds = new Rounds(() => this.look().then(() => this.settings.idleLookMs));
  private isStopping = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly pods: PodSteps,
    private readonly clock: DatabaseClock,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.rounds.start(this.settings.idleLookMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    await this.rounds.stop();
  }

  /** Looks at all pods that may idle for a limited time. While gpuaas does not answer, nothing is stopped. */
  async look(): Promise<void> {
    try {
      for (let after = nilId; !this.isStopping;) {
        const rows = await this.dataSource.query<Watched[]>(
          `SELECT pod_id, start, pod_name, image, coalesce(cluster.driver = 'simulated', false) AS is_simulated
           FROM pod LEFT JOIN cluster USING (gpuaas_id)
           WHERE pod.state = 'running' AND idle_stop IS NOT NULL AND pod_id > $1 ORDER BY pod_id LIMIT $2`,
          [after, maxPodsPerReading],
        );
        const last = rows.at(-1);
        if (!last) return;
        await this.lookAt(rows);
        after = last.pod_id;
      }
    } catch (error) {
      const message = messageOf(error);
      if (!this.isStopping)
        this.logger.warn(`Cannot read the GPU utilization of pods; idle pods are not stopped meanwhile: ${message}`);
    }
  }

  private async lookAt(rows: readonly Watched[]): Promise<void> {
    const atMs = await this.clock.nowMs();
    const asked = { seconds: windowSeconds, pods: rows.map(askedOf) };
    const { data } = await this.rpc.call(podUsages.read, asked, systemContext('pods', { deadlineMs: readingMs }));
    await this.transactions.run((manager) => this.judgeAll(manager, data, atMs));
  }

  /** Under the locks of the rows: another replica may have looked at the same time. */
  private async judgeAll(manager: EntityManager, usages: readonly PodUsage[], atMs: number): Promise<void> {
    const condition = `pod_id = ANY ($1) AND state = 'running' AND idle_stop IS NOT NULL`;
    const pods = await this.pods.lockWhere(manager, condition, [usages.map(({ pod_id }) => pod_id)]);
    const byId = new Map(usages.map((usage) => [usage.pod_id, usage]));
    const kept: { podId: string; idleness: KeptIdleness }[] = [];
    for (const pod of pods) {
      const usage = byId.get(pod.podId);
      if (usage?.start !== pod.start) continue;
      const idleness = await this.judge(manager, pod, usage, atMs);
      if (idleness) kept.push({ podId: pod.podId, idleness });
    }
    await manager.query(
      'UPDATE pod SET idleness = given.idleness FROM unnest($1::uuid[], $2::jsonb[]) given (pod_id, idleness) WHERE pod.pod_id = given.pod_id',
      [kept.map(({ podId }) => podId), kept.map(({ idleness }) => JSON.stringify(idleness))],
    );
  }

  /** What is to be kept of the look; undefined where the pod is stopped, or was looked at meanwhile. */
  private async judge(
    manager: EntityManager,
    pod: PodEntity,
    { kind, peak_percent }: PodUsage,
    atMs: number,
  ): Promise<KeptIdleness | undefined> {
    const { idleness: before, idleStop: rule } = pod;
    if (!rule || (before && before.lookedAtMs >= atMs)) return undefined;
    const { verdict, ...next } = afterLook(before, { atMs, peakPercent: peak_percent }, rule);
    if (verdict === 'stop') {
      const endReason = `It was stopped after ${idle(rule)}.`;
      await this.pods.move(manager, pod, 'STOP', { ...self, reason: endReason }, { endReason });
      return undefined;
    }
    if (verdict === 'warn') {
      const left = Math.ceil((rule.minutes * 60_000 - (atMs - (next.sinceMs ?? atMs))) / 60_000);
      const allowed = `${idle(rule)} ${rule.minutes === 1 ? 'is' : 'are'} allowed`;
      const message = `The pod will be stopped in ${left} min unless it uses its GPU: ${allowed}.`;
      await writePlatformLine(manager, pod.podId, message);
    }
    const unknownSinceMs = kind === 'no_data' ? (before?.unknownSinceMs ?? atMs) : null;
    const isUnknown = unknownSinceMs !== null && atMs - unknownSinceMs >= unknownMs;
    const isBlind = kind === 'shared' || isUnknown;
    if (isBlind && !before?.isBlind)
      await writePlatformLine(manager, pod.podId, isUnknown ? unknownMessage : sharedMessage);
    return { ...next, isBlind, unknownSinceMs };
  }
}

/** Figures of simulated GPUs follow what their pods simulate. */
function askedOf({ pod_id, start, pod_name, image, is_simulated }: Watched): ReadPodUsage['pods'][number] {
  const isIdle = is_simulated && scenarioOf(pod_name, image) === 'idle';
  return { pod_id, start, ...(isIdle && { is_idle: true }) };
}

const unknownMessage = 'idle_stop has no effect for now: there is no figure of how much the pod uses its GPU.';
const sharedMessage =
  'idle_stop has no effect: the pod shares its GPU with others, and what each of them uses cannot be told apart.';

function idle({ minutes: count, gpu_below_percent }: IdleStop): string {
  return `${minutes(count)} with less than ${gpu_below_percent} % use of its GPU`;
}
