import { call, createTeam, fresh, succeed, underTest, until, type Operated, type Refusal } from './client.js';

interface GpuTenant {
  subscription_id: string;
  workload_id: string | null;
}

export interface GpuView {
  gpu_id: string;
  mode: string | null;
  origin: string;
  transition: string | null;
  reason: string | null;
  slices: (GpuTenant & { profile: string; start: number; size: number; state: string })[];
  tenants: GpuTenant[];
}

export interface NodeView {
  node_id: string;
  gpuaas_id: string;
  status: string;
  reason: string | null;
  retry_at: string | null;
  gpus: GpuView[];
}

/** A region with a GPU service of one simulated node, which is told to get ready. */
export async function createNode(
  options: { name?: string; gpus?: { board: string; count: number }[]; platform?: Operated } = {},
): Promise<{ regionId: string; gpuaasId: string; nodeId: string; gpuIds: string[]; read: () => Promise<NodeView> }> {
  const { name = 'gpu-01', gpus = [{ board: 'A100-80GB', count: 1 }], platform = underTest } = options;
  const access = () => ({ url: platform.url, key: platform.adminKey });
  // A gateway can be ready before the services behind it.
  await until(
    () => call('GET', '/region', access()),
    ({ status }) => status === 200,
  );
  const region = await succeed<{ region_id: string }>('POST', '/region', {
    ...access(),
    body: { region_name: fresh('region') },
  });
  const gpuaas = await succeed<{ gpuaas_id: string }>('POST', '/gpuaas', {
    ...access(),
    body: { region_id: region.region_id, name: 'a' },
  });
  const body = { gpuaas_id: gpuaas.gpuaas_id, node_name: name, gpus };
  const node = await succeed<NodeView>('POST', '/gpuaas/node', { ...access(), body });
  await succeed('POST', `/gpuaas/node/${node.node_id}/initialise`, access());
  return {
    regionId: region.region_id,
    gpuaasId: gpuaas.gpuaas_id,
    nodeId: node.node_id,
    gpuIds: node.gpus.map(({ gpu_id }) => gpu_id),
    read: () => succeed<NodeView>('GET', `/gpuaas/node/${node.node_id}`, access()),
  };
}

/**
 * A pool of all GPUs of a node unless `gpu_ids` are among the terms, made once the node is ready; its GPUs are
 * prepared.
 */
export async function createPool(
  node: Awaited<ReturnType<typeof createNode>>,
  terms: object,
  platform: Operated = underTest,
): Promise<{ poolId: string; poolName: string }> {
  await until(node.read, ({ status }) => status === 'ready');
  const poolName = fresh('pool');
  const body = { gpuaas_id: node.gpuaasId, pool_name: poolName, gpu_ids: node.gpuIds, ...terms };
  const access = { url: platform.url, key: platform.adminKey };
  const { pool_id: poolId } = await succeed<{ pool_id: string }>('POST', '/gpuaas/pool/create', { ...access, body });
  await until(node.read, ({ gpus }) => gpus.every(({ transition }) => transition !== 'preparing'));
  return { poolId, poolName };
}

export interface SubscriptionView {
  subscription_id: string;
  team_id: string;
  pool_id: string;
  status: string;
  reason: string | null;
  profile: string;
  v_ram_gb: number;
  vgpus_allocated: number;
  resize: { vgpus: number; status: string; reason: string | null } | null;
  metrics: { cpu_usage: number; memory_usage: number; gpu_utilization: number };
  metrics_status: string;
}

export interface WorkloadView {
  workload_id: string;
  status: string;
  reason: string | null;
}

interface AvailablePool {
  pool_id: string;
  profiles: { profile: string; v_ram_gb: number; available_vgpus: number; unit_price: string | null }[];
}

/** A team with a member, and what that member does with GPU pools. */
export async function createTenant(name: string, roles: string[] = ['member'], platform: Operated = underTest) {
  const created = await createTeam(name, roles, platform);
  const teamId = created.team.id;
  const access = () => ({ url: platform.url, key: created.keys.member ?? '' });
  const ask = <Body>(method: string, path: string, body?: object) =>
    call<Body & Refusal>(method, path, { ...access(), body });
  const subscription = async (id: string) => {
    const path = `/gpuaas/pool-subscription?team_id=${teamId}&subscription_id=${id}`;
    const [found] = (await succeed<{ data: SubscriptionView[] }>('GET', path, access())).data;
    if (!found) throw new Error(`${path} answered nothing`);
    return found;
  };
  const workload = async (id: string) => {
    const path = `/gpuaas/workload?team_id=${teamId}&include_ended=true&limit=100`;
    const found = (await succeed<{ data: WorkloadView[] }>('GET', path, access())).data.find(
      ({ workload_id }) => workload_id === id,
    );
    if (!found) throw new Error(`${path} does not name ${id}`);
    return found;
  };
  return {
    ...created,
    teamId,
    key: created.keys.member ?? '',
    subscription,
    workload,
    subscribe: (body: object) => ask<SubscriptionView>('POST', '/gpuaas/pool/subscribe', { team_id: teamId, ...body }),
    unsubscribe: (id: string, body: object = {}) =>
      ask<SubscriptionView>('POST', '/gpuaas/pool/unsubscribe', { subscription_id: id, ...body }),
    resize: (id: string, vgpus: number) => ask<SubscriptionView>('PUT', `/gpuaas/pool-subscription/${id}`, { vgpus }),
    start: (id: string, body: object = {}) =>
      ask<WorkloadView>('POST', '/gpuaas/workload', { subscription_id: id, name: 'job', ...body }),
    stop: (id: string) => ask<WorkloadView>('DELETE', `/gpuaas/workload/${id}`),
    /** The subscription when it has come to this status. */
    subscribed: (id: string, status = 'active', deadlineMs?: number) =>
      until(
        () => subscription(id),
        (found) => found.status === status,
        deadlineMs,
      ),
    /** The workload when it has come to this status. */
    runs: (id: string, status = 'running') =>
      until(
        () => workload(id),
        (found) => found.status === status,
      ),
    /** What the pool of a GPU service with no other pool has for the team. */
    offers: async (gpuaasId: string) => {
      const path = `/gpuaas/available-pools?team_id=${teamId}&gpuaas_id=${gpuaasId}`;
      return (await succeed<{ data: AvailablePool[] }>('GET', path, access())).data[0]?.profiles ?? [];
    },
  };
}

/** Of a node with one GPU. */
export async function firstGpu(node: { read: () => Promise<NodeView> }) {
  const [gpu] = (await node.read()).gpus;
  if (!gpu) throw new Error('The node has no GPU.');
  return gpu;
}

/** A pool whose GPUs are lent to more tenants than they have slices. */
export const halves = {
  sharing_mode: 'Spatial',
  mechanism: 'mps',
  replicas: 2,
  allow_fallback: true,
  temporal_replicas: 4,
};
