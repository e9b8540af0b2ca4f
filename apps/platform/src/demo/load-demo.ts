import { DemoApi, type DemoPlatform } from './demo-api.js';
import { makeInventory, type DemoPool } from './demo-inventory.js';
import { makeTeams, type DemoTeam } from './demo-teams.js';
import { setPrices, tellUsage } from './demo-usage.js';

export interface LoadedDemo {
  teams: readonly DemoTeam[];
  durationMs: number;
}

/**
 * Fills an empty platform with something to look at: regions, nodes and pools in every mode, three teams, two months of usage, and what runs now. All of it
 * by the public operations, so it is as true as anything else there. Throws where the platform is not empty.
 */
export async function loadDemo(platform: DemoPlatform): Promise<LoadedDemo> {
  const startedMs = performance.now();
  const api = new DemoApi(platform);
  const { pagination } = await api.get<{ pagination: { total: number } }>('/region');
  if (pagination.total > 0)
    throw new Error('The demo is for an empty platform, and this one has regions. Name another folder by ATOLL_DATA_DIR.');
  const nowMs = Date.now();
  const [pools, teams] = await Promise.all([makeInventory(api), makeTeams(api), setPrices(api, nowMs)]);
  await Promise.all([tellUsage(api, teams, pools, nowMs), subscribeTeams(api, teams, pools)]);
  return { teams, durationMs: performance.now() - startedMs };
}

interface Holding {
  team: string;
  workspace: string;
  pool: string;
  name: string;
  vgpus: number;
  profile?: string;
  /** Workloads that run on it. */
  runs: string[];
}

const holdings: readonly Holding[] = [
  {
    team: 'Protein Lab',
    workspace: 'folding',
    pool: 'a100-slices',
    name: 'folding',
    vgpus: 3,
    profile: '3g.40gb',
    runs: ['fold-batch-12', 'fold-batch-13'],
  },
  {
    team: 'Protein Lab',
    workspace: 'teaching',
    pool: 'a100-slices',
    name: 'course',
    vgpus: 5,
    profile: '1g.10gb',
    runs: ['notebook-ada', 'notebook-mei', 'grader'],
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'training',
    pool: 'h100-large',
    name: 'vision',
    vgpus: 1,
    profile: '7g.80gb',
    runs: ['yolo-finetune'],
  },
  { team: 'Nimbus Robotics', workspace: 'training', pool: 'h100-large', name: 'depth', vgpus: 1, profile: '3g.40gb', runs: [] },
  {
    team: 'Nimbus Robotics',
    workspace: 'inference',
    pool: 'l40s-shared',
    name: 'serving',
    vgpus: 5,
    runs: ['pick-api', 'place-api', 'map-api'],
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'inference',
    pool: 'a100-elastic',
    name: 'burst',
    vgpus: 6,
    runs: Array.from({ length: 5 }, (_, at) => `burst-${at + 1}`),
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    pool: 'l4-turns',
    name: 'fraud',
    vgpus: 6,
    runs: ['score-live', 'score-batch', 'drift-watch'],
  },
  { team: 'Ledger Analytics', workspace: 'models', pool: 'a100-slices', name: 'embeddings', vgpus: 1, profile: '2g.20gb', runs: ['embed'] },
];

async function subscribeTeams(api: DemoApi, teams: readonly DemoTeam[], pools: ReadonlyMap<string, DemoPool>): Promise<void> {
  const held: { id: string; teamId: string; runs: string[] }[] = [];
  for (const { team: name, workspace, pool, runs, ...terms } of holdings) {
    const team = teams.find((candidate) => candidate.name === name);
    const body = { team_id: team?.teamId, workspace_id: team?.workspaces.get(workspace), pool_id: pools.get(pool)?.poolId, ...terms };
    const { subscription_id } = await api.post<{ subscription_id: string }>('/gpuaas/pool/subscribe', body);
    held.push({ id: subscription_id, teamId: team?.teamId ?? '', runs });
  }
  await Promise.all(
    held.map(async ({ id, teamId, runs }) => {
      const path = `/gpuaas/pool-subscription?team_id=${teamId}&subscription_id=${id}`;
      await api.until<{ data: { status: string }[] }>(path, ({ data }) => data[0]?.status === 'active');
      for (const name of runs) await api.post('/gpuaas/workload', { subscription_id: id, name });
    }),
  );
}
