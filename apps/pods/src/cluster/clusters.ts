import {
  ClusterError,
  dockerCapabilities,
  openDocker,
  simulatedCapabilities,
  SimulatedWorld,
  type Capabilities,
  type ClusterDriver,
  type DockerSettings,
} from '@atoll/cluster';
import { clusterPurpose } from '@atoll/contracts/gpuaas';
import { rowsOf } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PodsSettings } from '../pods-settings.js';
import type { ClusterEntity } from '../model/cluster.entity.js';
import { ClusterRows } from './cluster-rows.js';

const identifyMs = 10_000;

interface OpenCluster {
  readonly setting: string;
  readonly driver: Promise<ClusterDriver>;
}

/**
 * Each GPU service has the driver that an operator has set for it; several kinds serve one installation side by side.
 */
@Injectable()
export class Clusters implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly world: SimulatedWorld;
  readonly #open = new Map<string, OpenCluster>();
  readonly #logger = new Logger(Clusters.name);

  constructor(
    dataSource: DataSource,
    private readonly rows: ClusterRows,
    private readonly sealer: Sealer,
    settings: PodsSettings,
  ) {
    const { simulatedHost: listenHost, simulatedPullMs: pullMs } = settings;
    this.world = new SimulatedWorld({
      store: rowsOf(dataSource),
      listenHost,
      pullMs,
      secrets: sealer,
      warn: (sentence) => this.#logger.warn(sentence),
    });
  }

  onApplicationBootstrap(): void {
    this.world.listen();
  }

  async beforeApplicationShutdown(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map(close));
    await this.world.close();
  }

  /**
   * Throws a `ClusterError` where the cluster cannot be used now: one that hangs keeps its callers waiting for 10 s at
   * most, and no others. `another_cluster`: another engine has taken the place of the one that was first found since
   * the cluster was set.
   */
  async driverOf(gpuaasId: string): Promise<ClusterDriver> {
    const cluster = await this.rows.read(gpuaasId);
    const known = this.#open.get(gpuaasId);
    // Others may have read a later setting since, and opened its driver.
    if (known && Number(known.setting) >= Number(cluster.setting)) return known.driver;
    if (known) void close(known);
    const opened = { setting: cluster.setting, driver: this.#driverFor(cluster) };
    this.#open.set(gpuaasId, opened);
    // It is tried again by the next caller.
    opened.driver.catch(() => this.#open.get(gpuaasId) === opened && this.#open.delete(gpuaasId));
    return opened.driver;
  }

  /** What its driver can do, known without asking it. */
  async capabilitiesOf(gpuaasId: string): Promise<Capabilities> {
    const { driver } = await this.rows.read(gpuaasId);
    return driver === 'docker' ? dockerCapabilities : simulatedCapabilities;
  }

  /** Throws `unavailable` where the last check found that the cluster does not answer: it takes nothing new. */
  async requireReachable(gpuaasId: string): Promise<void> {
    const { isUnreachable } = await this.rows.read(gpuaasId);
    if (isUnreachable)
      throw new AppError('unavailable', 'The cluster of this GPU service is unreachable; nothing new can start there.');
  }

  /** As `requireReachable`; throws `not_supported` where the cluster has nothing of this kind. */
  async requireSupport(gpuaasId: string, kind: 'vms' | 'volumes', refusal: string): Promise<void> {
    await this.requireReachable(gpuaasId);
    if (!(await this.capabilitiesOf(gpuaasId))[kind]) throw new AppError('not_supported', refusal);
  }

  /** Under which the exposed services of this GPU service are reached. */
  async publicHostOf(gpuaasId: string): Promise<string> {
    return (await this.rows.read(gpuaasId)).publicHost;
  }

  /**
   * Returns once what is known of the cluster is at least as new as `setting`, so that nothing starts on a former one.
   */
  async requireSetting(gpuaasId: string, setting: number): Promise<void> {
    await this.rows.read(gpuaasId, setting);
  }

  #driverFor(cluster: ClusterEntity): Promise<ClusterDriver> {
    if (cluster.driver === 'simulated') return Promise.resolve(this.world.cluster(`gpuaas-${cluster.gpuaasId}`));
    if (cluster.driver === 'docker') return this.#openDocker(cluster);
    return Promise.reject(
      new ClusterError('not_supported', 'This release has no driver for the cluster of this GPU service.'),
    );
  }

  async #openDocker(cluster: ClusterEntity): Promise<ClusterDriver> {
    const driver = openDocker(this.#settingsOf(cluster), await this.rows.installationId(), cluster.publicHost);
    try {
      const identity = await driver.identify(AbortSignal.timeout(identifyMs));
      const kept = await this.rows.keepIdentity(cluster, identity);
      // undefined: it was set anew meanwhile, and is opened again.
      if (kept === undefined) throw new ClusterError('unreachable', 'The settings of the cluster have changed.');
      if (kept !== identity)
        throw new ClusterError('another_cluster', 'Another container engine has replaced the one that ran the pods.');
      return driver;
    } catch (error) {
      await driver.close();
      throw error;
    }
  }

  #settingsOf({ doorImage, gpuaasId, sealedTls, socket, url }: ClusterEntity): DockerSettings {
    const image = doorImage ?? '';
    if (socket !== null) return { socket, doorImage: image };
    if (url === null || sealedTls === null)
      throw new ClusterError('invalid', 'The cluster has neither a socket nor an address.');
    const tls = this.sealer.open(sealedTls, clusterPurpose(gpuaasId)).toString('utf8');
    return { url, ...(JSON.parse(tls) as Pick<DockerSettings, 'ca' | 'cert' | 'key'>), doorImage: image };
  }
}

/** What is under way there fails, and is tried again with the driver that took its place. */
async function close({ driver }: OpenCluster): Promise<void> {
  const opened = await driver.catch(() => null);
  await opened?.close();
}
