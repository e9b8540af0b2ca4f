import type { DemoApi } from './demo-api.js';

export interface DemoPool {
  poolId: string;
  regionId: string;
  poolName: string;
}

interface Node {
  node_id: string;
  status: string;
  gpus: { gpu_id: string }[];
}

interface PoolPlan {
  /** The GPUs of the node that it takes, from 0. */
  gpus: number[];
  name: string;
  terms: object;
}

interface NodePlan {
  service: 'oslo-a' | 'mumbai-a';
  name: string;
  board: string;
  count: number;
  pools: PoolPlan[];
}

/** Two regions, four boards, and pools in every mode; one node that does not come up. */
const nodePlans: readonly NodePlan[] = [
  {
    service: 'oslo-a',
    name: 'oslo-a100-01',
    board: 'A100-80GB',
    count: 4,
    pools: [
      {
        gpus: [0, 1, 2],
        name: 'a100-slices',
        terms: { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.10gb', '2g.20gb', '3g.40gb'] },
      },
      {
        gpus: [3],
        name: 'a100-elastic',
        terms: {
          sharing_mode: 'Spatial',
          mechanism: 'mps',
          replicas: 3,
          overcommit: 3,
          allow_fallback: true,
          temporal_replicas: 9,
        },
      },
    ],
  },
  {
    service: 'oslo-a',
    name: 'oslo-h100-01',
    board: 'H100-80GB',
    count: 2,
    pools: [
      {
        gpus: [0, 1],
        name: 'h100-large',
        terms: { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['3g.40gb', '7g.80gb'] },
      },
    ],
  },
  {
    service: 'mumbai-a',
    name: 'mumbai-l40s-01',
    board: 'L40S-48GB',
    count: 2,
    pools: [{ gpus: [0, 1], name: 'l40s-shared', terms: { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 } }],
  },
  {
    service: 'mumbai-a',
    name: 'mumbai-l4-01',
    board: 'L4-24GB',
    count: 2,
    pools: [
      { gpus: [0, 1], name: 'l4-turns', terms: { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 6 } },
    ],
  },
  { service: 'mumbai-a', name: 'mumbai-l4-02.init-refuse', board: 'L4-24GB', count: 2, pools: [] },
];

/** The pools by their names, once their nodes are ready. */
export async function makeInventory(api: DemoApi): Promise<Map<string, DemoPool>> {
  const north = await api.post<{ region_id: string }>('/region', {
    region_name: 'eu-north',
    city: 'Oslo',
    country: 'Norway',
  });
  const south = await api.post<{ region_id: string }>('/region', {
    region_name: 'ap-south',
    city: 'Mumbai',
    country: 'India',
  });
  const regions = { 'oslo-a': north.region_id, 'mumbai-a': south.region_id };
  const services = new Map<string, string>();
  for (const [name, region_id] of Object.entries(regions)) {
    const { gpuaas_id } = await api.post<{ gpuaas_id: string }>('/gpuaas', { region_id, name });
    services.set(name, gpuaas_id);
  }
  const pools = await Promise.all(
    nodePlans.map((plan) => makeNode(api, plan, services.get(plan.service) ?? '', regions[plan.service])),
  );
  return new Map(pools.flat().map((pool) => [pool.poolName, pool]));
}

async function makeNode(api: DemoApi, plan: NodePlan, gpuaas_id: string, regionId: string): Promise<DemoPool[]> {
  const gpus = [{ board: plan.board, count: plan.count }];
  const node = await api.post<Node>('/gpuaas/node', { gpuaas_id, node_name: plan.name, gpus });
  await api.post(`/gpuaas/node/${node.node_id}/initialise`);
  if (plan.pools.length === 0) return [];
  await api.until<Node>(`/gpuaas/node/${node.node_id}`, ({ status }) => status === 'ready');
  const made: DemoPool[] = [];
  for (const { gpus: taken, name, terms } of plan.pools) {
    const gpu_ids = taken.flatMap((at) => node.gpus[at]?.gpu_id ?? []);
    const { pool_id } = await api.post<{ pool_id: string }>('/gpuaas/pool/create', {
      gpuaas_id,
      pool_name: name,
      gpu_ids,
      ...terms,
    });
    made.push({ poolId: pool_id, regionId, poolName: name });
  }
  return made;
}
