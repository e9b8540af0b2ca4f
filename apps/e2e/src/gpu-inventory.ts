import { setTimeout as delay } from 'node:timers/promises';
import { adminKey, call } from './client.js';

interface GpuView {
  gpu_id: string;
  mode: string;
  origin: string;
  transition: string | null;
  reason: string | null;
  slices: { subscription_id: string; state: string }[];
  tenants: object[];
}

export interface NodeView {
  node_id: string;
  status: string;
  reason: string | null;
  gpus: GpuView[];
}

export interface SubscriptionView {
  subscription_id: string;
  status: string;
  reason: string | null;
  profile: string;
  v_ram_gb: number;
  vgpus_allocated: number;
}

let sequence = 0;
/** A name that no other story uses. */
export const fresh = (name: string): string => `${name}-${process.pid}-${Date.now()}-${(sequence += 1)}`;

const asked = async <Body>(path: string, body?: object): Promise<Body> => {
  const answer = await call<Body>('POST', path, { key: adminKey, ...(body && { body }) });
  if (answer.status >= 300) throw new Error(`POST ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
};

/** Looks until it holds, for 15 s at most. */
export async function eventually<T>(look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`It does not come about: ${JSON.stringify(seen)}`);
    await delay(50);
  }
}

export async function nodeOf(node_id: string): Promise<NodeView> {
  return (await call<NodeView>('GET', `/gpuaas/node/${node_id}`, { key: adminKey })).body;
}

/** A simulated node that is on its way into service; what it does wrong stands in its name. */
export async function createNode(gpus: object[], suffix = ''): Promise<NodeView & { gpuaas_id: string; region_id: string }> {
  const { region_id } = await asked<{ region_id: string }>('/region', { region_name: fresh('region'), city: 'Oslo' });
  const { gpuaas_id } = await asked<{ gpuaas_id: string }>('/gpuaas', { region_id, name: 'a' });
  const node = await asked<NodeView>('/gpuaas/node', { gpuaas_id, node_name: `${fresh('node')}${suffix}`, gpus });
  await asked(`/gpuaas/node/${node.node_id}/initialise`);
  return { ...node, gpuaas_id, region_id };
}

export interface PoolUnderTest {
  pool_id: string;
  node_id: string;
  gpuaas_id: string;
  region_id: string;
}

/** A pool of all GPUs of a new node. */
export async function createPool(terms: object, { board = 'A100-80GB', count = 1, suffix = '' } = {}): Promise<PoolUnderTest> {
  const { node_id, gpuaas_id, region_id, gpus } = await createNode([{ board, count }], suffix);
  await eventually(
    () => nodeOf(node_id),
    ({ status }) => status === 'ready',
  );
  const gpu_ids = gpus.map(({ gpu_id }) => gpu_id);
  const { pool_id } = await asked<{ pool_id: string }>('/gpuaas/pool/create', { gpuaas_id, pool_name: fresh('pool'), gpu_ids, ...terms });
  return { pool_id, node_id, gpuaas_id, region_id };
}
