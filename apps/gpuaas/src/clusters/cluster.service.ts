import { dockerCapabilities, simulatedCapabilities, type DockerSettings } from '@atoll/cluster';
import { clusterChanged, requirePlatformAdmin, type CallContext, type Cluster, type GpuaasPath, type SetCluster } from '@atoll/contracts';
import { Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Sealer } from '@atoll/seal';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { invalidField } from '../invalid-field.js';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import { liveWorkload } from '../workloads/workload.machine.js';
import { ClusterChecks } from './cluster-checks.js';
import { ClusterEntity, clusterPurpose } from './cluster.entity.js';

const defaultHost = '127.0.0.1';

/** What runs the pods of each GPU service. */
@Injectable()
export class ClustersService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
    private readonly pools: PoolCatalogue,
    private readonly sealer: Sealer,
    private readonly checks: ClusterChecks,
    private readonly settings: GpuaasSettings,
  ) {}

  /** It is kept whether it answers or not: the answer says which. */
  async set(asked: SetCluster, context: CallContext): Promise<Cluster> {
    requirePlatformAdmin(context.caller);
    const { gpuaas_id, driver, public_host = defaultHost } = asked;
    await this.pools.requireGpuaas(gpuaas_id);
    if (driver === 'kubernetes') throw new AppError('not_supported', 'This release has no driver for Kubernetes; use simulated or docker.');
    const settings = this.settingsFor(asked);
    const sealed = settings && this.sealer.seal(JSON.stringify(settings), clusterPurpose(gpuaas_id));
    const cluster = await this.transactions.run(async (manager) => {
      await manager.query('SELECT FROM gpuaas WHERE gpuaas_id = $1 FOR UPDATE', [gpuaas_id]);
      const known = await manager.findOneBy(ClusterEntity, { gpuaasId: gpuaas_id });
      if ((known?.driver ?? this.settings.cluster) !== driver) await this.requireIdle(manager, gpuaas_id);
      const revision = String(Number(known?.revision ?? 0) + 1);
      const never = { identity: null, status: 'unreachable' as const, since: null, checks: [], nextCheckAt: new Date() };
      const entity = manager.create(ClusterEntity, {
        gpuaasId: gpuaas_id,
        driver,
        publicHost: public_host,
        sealedSettings: sealed,
        revision,
        ...never,
      });
      await manager.save(entity);
      const payload = { gpuaas_id, driver, public_host, sealed_settings: sealed, revision: Number(revision) };
      await this.outbox.add(manager, clusterChanged, payload, context);
      return entity;
    });
    return this.view(await this.checks.check(cluster));
  }

  async get({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<Cluster> {
    requirePlatformAdmin(caller);
    await this.pools.requireGpuaas(gpuaas_id);
    return this.view(await this.read(gpuaas_id));
  }

  async check({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<Cluster> {
    requirePlatformAdmin(caller);
    await this.pools.requireGpuaas(gpuaas_id);
    const cluster = await this.read(gpuaas_id);
    return this.view(cluster.nextCheckAt ? await this.checks.check(cluster) : cluster);
  }

  private async read(gpuaasId: string): Promise<ClusterEntity> {
    const found = await this.dataSource.manager.findOneBy(ClusterEntity, { gpuaasId });
    if (found) return found;
    const { cluster: driver } = this.settings;
    const checks = [{ name: 'reachable', ok: true, detail: 'The cluster is simulated.', how_to_fix: null }];
    const values = { gpuaasId, driver, publicHost: defaultHost, sealedSettings: null, status: 'ok' as const, since: null, checks };
    return this.dataSource.manager.create(ClusterEntity, values);
  }

  private settingsFor({ driver, socket, url, ca, cert, key, door_image }: SetCluster): DockerSettings | null {
    const given = Object.entries({ socket, url, ca, cert, key, door_image }).filter(([, value]) => value !== undefined);
    if (driver === 'simulated') {
      const [first] = given;
      if (first) throw invalidField(first[0], 'isFitting', 'must be left out with the driver simulated');
      return null;
    }
    if ((socket === undefined) === (url === undefined))
      throw invalidField('socket', 'isFitting', 'must be sent, or url in its place, and not both');
    if (socket !== undefined && !this.settings.sockets.includes(socket)) {
      throw invalidField('socket', 'isAllowed', 'must be one of ATOLL_DOCKER_SOCKETS');
    }
    for (const [name, value] of Object.entries({ ca, cert, key })) {
      if (url !== undefined && value === undefined) throw invalidField(name, 'isDefined', 'must be sent with url');
      if (socket !== undefined && value !== undefined) throw invalidField(name, 'isFitting', 'must be left out with socket');
    }
    const tls = url !== undefined && ca !== undefined && cert !== undefined && key !== undefined ? { url, ca, cert, key } : {};
    return { ...(socket !== undefined && { socket }), ...tls, doorImage: door_image ?? this.settings.doorImage };
  }

  private async requireIdle(manager: EntityManager, gpuaasId: string): Promise<void> {
    const [{ running = 0 } = {}] = await manager.query<{ running: number }[]>(
      `SELECT count(*)::int AS running FROM workload JOIN subscription USING (subscription_id) JOIN pool USING (pool_id)
       WHERE gpuaas_id = $1 AND pod_id IS NOT NULL AND workload.${liveWorkload}`,
      [gpuaasId],
    );
    if (running > 0) throw new AppError('conflict', `${running} pods run there: stop them before another driver takes over.`);
  }

  private view(cluster: ClusterEntity): Cluster {
    const settings = this.checks.settingsOf(cluster);
    const { tls, udp, volumes, vms, shell } = cluster.driver === 'docker' ? dockerCapabilities : simulatedCapabilities;
    return {
      gpuaas_id: cluster.gpuaasId,
      driver: cluster.driver,
      public_host: cluster.publicHost,
      socket: settings?.socket ?? null,
      url: settings?.url ?? null,
      door_image: settings?.doorImage ?? null,
      status: cluster.status,
      since: cluster.since?.toISOString() ?? null,
      checks: cluster.checks,
      capabilities: { tls, udp, volumes, vms, shell: shell.by },
    };
  }
}
