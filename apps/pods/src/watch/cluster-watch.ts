import type { ClusterDriver } from '@atoll/cluster';
import { Transactions } from '@atoll/database';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { livePod } from '../model/pod.machine.js';
import { PodSteps } from '../pods/pod-steps.js';
import { PodsSettings } from '../pods-settings.js';
import { Clusters } from '../cluster/clusters.js';

const perLook = 500;
const lookMs = 8_000;

/** Has pods looked at whose cluster shows them otherwise than the database: by hints at once, and by a look at all of them from time to time. */
@Injectable()
export class ClusterWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(ClusterWatch.name);
  private readonly stopping = new AbortController();
  private readonly watched = new Map<string, Promise<void>>();
  /** Of each cluster that is watched: its driver, and what ends the watch once another took its place. */
  private readonly drivers = new Map<string, { driver: ClusterDriver; replaced: AbortController }>();
  private readonly looking = new Map<string, Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly pods: PodSteps,
    private readonly exposures: ExposureSteps,
    private readonly settings: PodsSettings,
  ) {}

  onApplicationBootstrap(): void {
    if (this.settings.workers.isIdle) return;
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.go());
    }, this.settings.sweepMs);
    this.round = this.go();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.round;
    await Promise.all([...this.watched.values(), ...this.looking.values()]);
  }

  /** Looks at all pods of a cluster that run. */
  async sweep(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const watch = this.drivers.get(gpuaasId);
    if (watch && watch.driver !== driver) watch.replaced.abort();
    for (let after = '00000000-0000-0000-0000-000000000000'; !this.stopping.signal.aborted;) {
      const rows = await this.dataSource.query<{ pod_id: string; run: number }[]>(
        `SELECT pod_id, run FROM pod WHERE gpuaas_id = $1 AND state = 'running' AND ${livePod} AND pod_id > $2 ORDER BY pod_id LIMIT $3`,
        [gpuaasId, after, perLook],
      );
      const last = rows.at(-1);
      if (!last) return;
      const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(lookMs)]);
      const sights = await driver.observePods(
        rows.map(({ pod_id, run }) => ({ kind: 'pod', id: pod_id, run })),
        signal,
      );
      const changed = rows.filter((_row, at) => sights[at]?.phase !== 'running').map(({ pod_id }) => pod_id);
      await this.touch(changed);
      after = last.pod_id;
    }
  }

  private async go(): Promise<void> {
    try {
      const rows = await this.dataSource.query<{ gpuaas_id: string }[]>(`SELECT DISTINCT gpuaas_id FROM pod WHERE ${livePod}`);
      for (const { gpuaas_id } of rows) {
        // One that hangs is looked at no second time meanwhile, and keeps no other from its look.
        this.once(this.looking, gpuaas_id, () => this.sweep(gpuaas_id));
        this.once(this.watched, gpuaas_id, () => this.watch(gpuaas_id));
      }
    } catch (error) {
      this.logger.warn(`Cannot look at the clusters; retrying: ${messageOf(error)}`);
    }
  }

  private once(running: Map<string, Promise<void>>, gpuaasId: string, work: () => Promise<void>): void {
    if (running.has(gpuaasId) || this.stopping.signal.aborted) return;
    const task = work()
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) this.logger.warn(`Cannot look at the cluster of GPU service ${gpuaasId}: ${messageOf(error)}`);
      })
      .finally(() => running.delete(gpuaasId));
    running.set(gpuaasId, task);
  }

  private async watch(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const replaced = new AbortController();
    this.drivers.set(gpuaasId, { driver, replaced });
    try {
      for await (const { kind, id } of driver.watch(AbortSignal.any([this.stopping.signal, replaced.signal]))) {
        if (kind === 'pod') await this.touch([id]);
        if (kind === 'door') await this.touchDoor(id);
      }
    } catch (error) {
      if (!replaced.signal.aborted) throw error;
    } finally {
      this.drivers.delete(gpuaasId);
    }
  }

  private async touchDoor(doorId: string): Promise<void> {
    const serviceId = /^svc-(\d+)$/.exec(doorId)?.[1];
    if (serviceId) await this.transactions.run((manager) => this.exposures.touch(manager, [serviceId]));
  }

  private async touch(podIds: readonly string[]): Promise<void> {
    if (podIds.length === 0) return;
    await this.transactions.run((manager) => this.pods.touch(manager, podIds));
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
