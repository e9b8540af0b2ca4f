import { maxPodsPerReading, podUsages, type IdleStop, type PodUsage } from '@atoll/contracts';
import { Transactions } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { PlatformLines } from '../logs/platform-lines.js';
import { PodSteps } from '../pods/pod-steps.js';
import { PodsSettings } from '../pods-settings.js';
import { afterLook, type Idleness } from './idleness.js';

/** Longer than the time between two looks, so that nothing between them is missed. */
const windowSeconds = 150;
const readingMs = 15_000;
const beginning = '00000000-0000-0000-0000-000000000000';
const cause = { actor: 'system:pods' };

interface Watched {
  readonly pod_id: string;
  readonly start: number;
}

/** Stops pods that do not use their own GPU slices for as long as their `idle_stop` says. */
@Injectable()
export class IdleWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(IdleWatch.name);
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();
  private isStopping = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly pods: PodSteps,
    private readonly lines: PlatformLines,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (this.settings.workers.isIdle) return;
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.look());
    }, this.settings.idleLookMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.isStopping = true;
    await this.round;
  }

  /** Looks at all pods that may idle for a limited time. While gpuaas does not answer, nothing is stopped. */
  async look(): Promise<void> {
    try {
      for (let after = beginning; !this.isStopping;) {
        const rows = await this.dataSource.query<Watched[]>(
          `SELECT pod_id, start FROM pod WHERE state = 'running' AND idle_stop IS NOT NULL AND pod_id > $1 ORDER BY pod_id LIMIT $2`,
          [after, maxPodsPerReading],
        );
        const last = rows.at(-1);
        if (!last) return;
        await this.lookAt(rows);
        after = last.pod_id;
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!this.isStopping) this.logger.warn(`Cannot read how much pods use their GPUs; no idle pod is stopped meanwhile: ${message}`);
    }
  }

  private async lookAt(rows: readonly Watched[]): Promise<void> {
    const atMs = this.settings.now();
    const asked = { seconds: windowSeconds, pods: rows.map(({ pod_id, start }) => ({ pod_id, start })) };
    const { data } = await this.rpc.call(podUsages.read, asked, systemContext('pods', { deadlineMs: readingMs }));
    for (const usage of data) await this.transactions.run((manager) => this.judge(manager, usage, atMs));
  }

  /** Under the lock of the row: another replica may have looked at the same time. */
  private async judge(manager: EntityManager, { pod_id, start, kind, peak_percent }: PodUsage, atMs: number): Promise<void> {
    const pod = await this.pods.lock(manager, pod_id);
    if (pod?.state !== 'running' || pod.start !== start || !pod.idleStop) return;
    const before = pod.idleness;
    if (before && before.lookedAtMs >= atMs) return;
    const { verdict, ...next } = afterLook(before, { atMs, peakPercent: peak_percent }, pod.idleStop);
    const endReason = `It was stopped after ${idle(pod.idleStop)}.`;
    if (verdict === 'stop') {
      await this.pods.move(manager, pod, 'STOP', { ...cause, reason: endReason }, { endReason });
      return;
    }
    if (verdict === 'warn') {
      const minutes = Math.ceil((pod.idleStop.minutes * 60_000 - (atMs - (next.sinceMs ?? atMs))) / 60_000);
      await this.lines.write(
        manager,
        pod_id,
        `The pod is stopped in ${minutes} min unless it uses its GPU: ${idle(pod.idleStop)} are allowed.`,
      );
    }
    const isBlind = kind === 'shared';
    if (isBlind && !before?.isBlind) await this.lines.write(manager, pod_id, blindMessage);
    await manager.query('UPDATE pod SET idleness = $2 WHERE pod_id = $1', [
      pod_id,
      JSON.stringify({ ...next, isBlind } satisfies KeptIdleness),
    ]);
  }
}

/** As it is kept in the row of a pod. */
export interface KeptIdleness extends Idleness {
  /** Its log says that its use cannot be told apart from that of others. */
  readonly isBlind: boolean;
}

const blindMessage = 'idle_stop has no effect: the pod shares its GPU with others, and what each of them uses cannot be told apart.';

function idle({ minutes, gpu_below_percent }: IdleStop): string {
  return `${minutes} minutes with less than ${gpu_below_percent} % use of its GPU`;
}
