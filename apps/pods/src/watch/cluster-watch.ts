import type { ClusterDriver } from '@atoll/cluster';
import { nilId, Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ClusterRounds } from '../cluster/cluster-rounds.js';
import { clustersOf } from '../cluster/clusters-of.js';
import { Clusters } from '../cluster/clusters.js';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { livePod } from '../model/pod.machine.js';
import { PodSteps } from '../pods/pod-steps.js';
import { PodsSettings } from '../pods-settings.js';

/**
 * Has pods looked at whose cluster shows them otherwise than the database: by hints at once, and by a look at all of
 * them from time to time.
 */
@Injectable()
export class ClusterWatch extends ClusterRounds {
  private readonly watched = new Map<string, Promise<void>>();
  /** Of each cluster that is watched: its driver, and what ends the watch once another took its place. */
  private readonly drivers = new Map<string, { driver: ClusterDriver; replaced: AbortController }>();

  constructor(
    dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly clusters: Clusters,
    private readonly pods: PodSteps,
    private readonly exposures: ExposureSteps,
    settings: PodsSettings,
  ) {
    super('the cluster', settings, dataSource);
  }

  protected override get everyMs(): number {
    return this.settings.sweepMs;
  }

  protected override due(): Promise<string[]> {
    return this.clustersBy(clustersOf('pod', livePod));
  }

  override look(gpuaasId: string): Promise<void> {
    this.once(this.watched, gpuaasId, () => this.watch(gpuaasId));
    return this.sweep(gpuaasId);
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    await Promise.all(this.watched.values());
  }

  /** Looks at all pods of a cluster that run. */
  async sweep(gpuaasId: string): Promise<void> {
    const driver = await this.clusters.driverOf(gpuaasId);
    const watch = this.drivers.get(gpuaasId);
    if (watch && watch.driver !== driver) watch.replaced.abort();
    await this.inPages(
      gpuaasId,
      nilId,
      (after, limit) =>
        this.dataSource.query<{ id: string; run: number }[]>(
          `SELECT pod_id AS id, run FROM pod WHERE gpuaas_id = $1 AND state = 'running' AND ${livePod} AND pod_id > $2 ORDER BY pod_id LIMIT $3`,
          [gpuaasId, after, limit],
        ),
      async (rows, signal) => {
        const sights = await driver.observePods(
          rows.map(({ id, run }) => ({ kind: 'pod', id, run })),
          signal,
        );
        await this.touch(rows.filter((_row, at) => sights[at]?.phase !== 'running').map(({ id }) => id));
      },
    );
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
