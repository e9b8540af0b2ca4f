import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { PodsSettings } from '../pods-settings.js';

const everyMs = 2_000;
const perRound = 200;
const removeMs = 8_000;

/** Removes runs that have ended from their clusters, once their log was read, or after a day. */
@Injectable()
export class RunCollector implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(RunCollector.name);
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private readonly busy = new Map<string, Promise<void>>();
  private round: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly clusters: Clusters,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (this.settings.workers.isIdle) return;
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.collect());
    }, everyMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.round;
    await Promise.all(this.busy.values());
  }

  /** One round; a cluster that hangs keeps no other from its turn. */
  async collect(): Promise<void> {
    const rows = await this.dataSource
      .query<{ pod_id: string; run: number; gpuaas_id: string }[]>(
        `SELECT pod_id, run, gpuaas_id FROM pod_run
         WHERE ended_at IS NOT NULL AND (is_log_read OR ended_at < clock_timestamp() - interval '1 day') AND gpuaas_id <> ALL ($2::bigint[])
         ORDER BY ended_at LIMIT $1`,
        // Those of a cluster that hangs take no place from others.
        [perRound, [...this.busy.keys()]],
      )
      .catch(() => []);
    for (const [gpuaasId, runs] of Map.groupBy(rows, ({ gpuaas_id }) => gpuaas_id)) {
      const task = this.removeAll(gpuaasId, runs)
        .catch((error: unknown) => this.logger.warn(`Cannot remove ended runs of GPU service ${gpuaasId}; retrying: ${String(error)}`))
        .finally(() => this.busy.delete(gpuaasId));
      this.busy.set(gpuaasId, task);
    }
  }

  private async removeAll(gpuaasId: string, runs: readonly { pod_id: string; run: number }[]): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    for (const { pod_id, run } of runs) {
      if (this.stopping.signal.aborted) return;
      const ref = { kind: 'pod', id: pod_id, run } as const;
      const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(removeMs)]);
      await driver.remove(ref, signal);
      const [sight] = await driver.observePods([ref], signal);
      if (sight?.phase === 'absent') await this.dataSource.query('DELETE FROM pod_run WHERE pod_id = $1 AND run = $2', [pod_id, run]);
    }
  }
}
