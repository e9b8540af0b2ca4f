import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dockerCapabilities, simulatedCapabilities } from '@atoll/cluster';
import { requirePlatformAdmin, requireService, type CallContext } from '@atoll/contracts';
import {
  clusterChanged,
  clusterPurpose,
  type Cluster,
  type ClusterChanged,
  type GpuaasPath,
  type SetCluster,
} from '@atoll/contracts/gpuaas';
import { podHoldings, type ClusterHoldings } from '@atoll/contracts/pods';
import { databaseNowMs, Transactions } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { BaremetalSecrets } from '../baremetal/hosts/baremetal-secrets.js';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { liveWorkload } from '../model/workload.machine.js';
import { ClusterChecks } from './cluster-checks.js';
import { ClusterRows } from './cluster-rows.js';
import { isConsoleHost, mustBeOtherHost } from './console-host.js';
import { clusterToTell, type ClusterEntity } from '../model/cluster.entity.js';

const defaultHost = '127.0.0.1';
const nothing: ClusterHoldings = { vms: 0, shared_volumes: 0 };

type Address = Pick<ClusterEntity, 'driver' | 'socket' | 'url' | 'doorImage' | 'sealedTls'>;

/** What runs the pods of each GPU service. */
@Injectable()
export class ClustersService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly outbox: Outbox,
    private readonly pools: PoolCatalogue,
    private readonly rows: ClusterRows,
    private readonly checks: ClusterChecks,
    private readonly secrets: BaremetalSecrets,
    private readonly settings: GpuaasSettings,
    private readonly rpc: Rpc,
  ) {}

  /** It is kept whether it answers or not: the answer says which. */
  async set(asked: SetCluster, context: CallContext): Promise<Cluster> {
    requirePlatformAdmin(context.caller);
    const { gpuaas_id, public_host = defaultHost } = asked;
    await this.pools.requireGpuaas(gpuaas_id);
    const address = this.addressOf(asked);
    if (address.driver === 'docker' && isConsoleHost(public_host, this.settings.publicUrl))
      throw invalidField('public_host', 'isOtherHost', mustBeOtherHost);
    // Asked before the transaction, which waits for no other service.
    const kept = isSameEngine(await this.rows.read(this.dataSource.manager, gpuaas_id), address)
      ? nothing
      : await this.keptOn(gpuaas_id);
    const cluster = await this.transactions.run(async (manager) => {
      const known = await this.rows.read(manager, gpuaas_id, 'change');
      if (!isSameEngine(known, address)) await requireIdle(manager, gpuaas_id, kept);
      const isDocker = address.driver === 'docker';
      const unchecked = {
        identity: null,
        status: isDocker ? 'unreachable' : 'ok',
        since: null,
        checks: [],
        nextCheckAt: new Date(await databaseNowMs(manager)),
        hasMissed: false,
      } as const;
      const [setting, revision] = [known.setting, known.revision].map((count) => String(Number(count) + 1));
      Object.assign(known, { ...address, publicHost: public_host, setting, revision, ...unchecked });
      await manager.save(known);
      await this.outbox.add(manager, clusterChanged, clusterToTell(known), context);
      return known;
    });
    return view(await this.checks.check(cluster));
  }

  async get({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<Cluster> {
    requirePlatformAdmin(caller);
    return view(await this.read(gpuaas_id));
  }

  async check({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<Cluster> {
    requirePlatformAdmin(caller);
    return view(await this.checks.check(await this.read(gpuaas_id)));
  }

  async lookUp({ gpuaas_id }: GpuaasPath, { caller }: CallContext): Promise<ClusterChanged> {
    requireService(caller);
    return clusterToTell(await this.read(gpuaas_id));
  }

  /** Throws `unavailable` where the pods service is away. */
  private keptOn(gpuaas_id: string): Promise<ClusterHoldings> {
    return this.rpc.call(podHoldings.ofGpuaas, { gpuaas_id }, systemContext('gpuaas', { deadlineMs: 2_000 }));
  }

  private async read(gpuaasId: string): Promise<ClusterEntity> {
    await this.pools.requireGpuaas(gpuaasId);
    return this.rows.read(this.dataSource.manager, gpuaasId);
  }

  /** Throws `invalid_input` for what does not fit the driver, `not_supported` for a driver that there is not. */
  private addressOf({ gpuaas_id, driver, socket, url, ca, cert, key, door_image }: SetCluster): Address {
    if (driver === 'kubernetes')
      throw new AppError('not_supported', 'There is no driver for Kubernetes yet; use simulated or docker.');
    const doorImage = door_image ?? this.settings.doorImage;
    const given = Object.entries({ socket, url, ca, cert, key, door_image }).filter(([, value]) => value !== undefined);
    const [first] = given;
    if (driver === 'simulated') {
      if (first) throw invalidField(first[0], 'isFitting', 'must be left out with the driver simulated');
      return { driver, socket: null, url: null, doorImage: null, sealedTls: null };
    }
    if ((socket === undefined) === (url === undefined)) {
      throw invalidField('socket', 'isFitting', 'or url must be sent, but not both');
    }
    if (socket !== undefined) {
      for (const [name, value] of Object.entries({ ca, cert, key })) {
        if (value !== undefined) throw invalidField(name, 'isFitting', 'must be left out with socket');
      }
      if (!this.settings.sockets.includes(socket))
        throw invalidField('socket', 'isAllowed', 'must be one of ATOLL_DOCKER_SOCKETS');
      return { driver, socket, url: null, doorImage, sealedTls: null };
    }
    if (url === undefined || !URL.canParse(url)) throw invalidField('url', 'isUrl', 'must be an https address');
    const sealedTls = this.secrets.required().seal(JSON.stringify(tlsOf({ ca, cert, key })), clusterPurpose(gpuaas_id));
    return { driver, socket: null, url, doorImage, sealedTls };
  }
}

/** Throws `invalid_input` for what is no certificate or key, and for a key that is not that of the certificate. */
function tlsOf({ ca, cert, key }: Pick<SetCluster, 'ca' | 'cert' | 'key'>): Record<'ca' | 'cert' | 'key', string> {
  const authority = readPem('ca', ca, (pem) => new X509Certificate(pem));
  const certificate = readPem('cert', cert, (pem) => new X509Certificate(pem));
  const privateKey = readPem('key', key, (pem) => createPrivateKey(pem));
  if (!certificate.value.checkPrivateKey(privateKey.value))
    throw invalidField('key', 'isFitting', 'must be the private key of cert');
  return { ca: authority.pem, cert: certificate.pem, key: privateKey.pem };
}

function readPem<T>(name: string, pem: string | undefined, read: (pem: string) => T): { pem: string; value: T } {
  if (pem === undefined) throw invalidField(name, 'isDefined', 'must be sent with url');
  try {
    return { pem, value: read(pem) };
  } catch {
    // What the library says may quote the key.
    throw invalidField(
      name,
      'isPem',
      name === 'key' ? 'must be a private key (PEM), without a passphrase' : 'must be a certificate (PEM)',
    );
  }
}

function isSameEngine(one: Address, other: Address): boolean {
  return one.driver === other.driver && one.socket === other.socket && one.url === other.url;
}

/** Nothing may run or be kept there that another engine would not have. */
async function requireIdle(
  manager: EntityManager,
  gpuaasId: string,
  { vms, shared_volumes }: ClusterHoldings,
): Promise<void> {
  const [{ running = 0 } = {}] = await manager.query<{ running: number }[]>(
    `SELECT count(*)::int AS running FROM workload JOIN subscription USING (subscription_id) JOIN pool USING (pool_id)
     WHERE gpuaas_id = $1 AND pod_id IS NOT NULL AND workload.${liveWorkload}`,
    [gpuaasId],
  );
  const counts = [
    { name: 'running pod', count: running },
    { name: 'VM', count: vms },
    { name: 'shared volume', count: shared_volumes },
  ].filter(({ count }) => count > 0);
  if (counts.length === 0) return;
  const held = counts.map(({ name, count }) => `${count} ${name}${count === 1 ? '' : 's'}`).join(', ');
  throw new AppError(
    'conflict',
    `The cluster has ${held}: stop pods, and delete VMs and volumes, before another driver or engine takes over.`,
  );
}

function view(cluster: ClusterEntity): Cluster {
  const { gpuaasId, driver, publicHost, socket, url, doorImage, status, since, checks } = cluster;
  const { tls, udp, volumes, vms, shell } = driver === 'docker' ? dockerCapabilities : simulatedCapabilities;
  return {
    gpuaas_id: gpuaasId,
    driver,
    public_host: publicHost,
    socket,
    url,
    door_image: doorImage,
    status,
    since: since?.toISOString() ?? null,
    checks,
    capabilities: { tls, udp, volumes, vms, shell },
  };
}
