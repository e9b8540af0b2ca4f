import { DemoApi, type DemoPlatform } from './demo-api.js';
import { makeInventory, type DemoPool } from './demo-inventory.js';
import { growVolumes, makeBaremetal, makeVms, makeVolumes, volumeKey, type DemoVolumes } from './demo-machines.js';
import { holdings, startPods, type PodPlan } from './demo-pods.js';
import { makeTeams, type DemoTeam } from './demo-teams.js';
import { setPrices, tellUsage } from './demo-usage.js';

export interface LoadedDemo {
  teams: readonly DemoTeam[];
  durationMs: number;
}

/**
 * Fills an empty platform with something to look at: regions, nodes and pools in every mode, three teams, two months of
 * usage, and what runs now, with pods, VMs, volumes and bare metal. All of it by the public operations, so it is as
 * true as anything else there. Throws where the platform is not empty.
 */
export async function loadDemo(platform: DemoPlatform): Promise<LoadedDemo> {
  const startedMs = performance.now();
  const api = new DemoApi(platform);
  const { pagination } = await api.get<{ pagination: { total: number } }>('/region');
  if (pagination.total > 0)
    throw new Error(
      'The demo needs an empty platform, and this one already has regions. Set ATOLL_DATA_DIR to another folder.',
    );
  const nowMs = Date.now();
  const [pools, teams] = await Promise.all([makeInventory(api), makeTeams(api), setPrices(api, nowMs)]);
  const regions = { north: pools.get('a100-slices')?.regionId ?? '', south: pools.get('l4-turns')?.regionId ?? '' };
  await Promise.all([
    tellUsage(api, teams, pools, nowMs),
    makeBaremetal(api, teams, regions),
    makeVolumes(api, teams, regions).then(async (volumes) => {
      await Promise.all([subscribeTeams(api, teams, pools, volumes), makeVms(api, teams, regions, volumes)]);
      await growVolumes(api, volumes);
    }),
  ]);
  return { teams, durationMs: performance.now() - startedMs };
}

async function subscribeTeams(
  api: DemoApi,
  teams: readonly DemoTeam[],
  pools: ReadonlyMap<string, DemoPool>,
  volumes: DemoVolumes,
): Promise<void> {
  const held: { id: string; team: string; teamId: string; runs: readonly string[]; pods: readonly PodPlan[] }[] = [];
  for (const { team: name, workspace, pool, runs = [], pods = [], ...terms } of holdings) {
    const team = teams.find((candidate) => candidate.name === name);
    const body = {
      team_id: team?.teamId,
      workspace_id: team?.workspaces.get(workspace),
      pool_id: pools.get(pool)?.poolId,
      ...terms,
    };
    const { subscription_id } = await api.post<{ subscription_id: string }>('/gpuaas/pool/subscribe', body);
    held.push({ id: subscription_id, team: name, teamId: team?.teamId ?? '', runs, pods });
  }
  await Promise.all(
    held.map(async ({ id, team, teamId, runs, pods }) => {
      const path = `/gpuaas/pool-subscription?team_id=${teamId}&subscription_id=${id}`;
      await api.until<{ data: { status: string }[] }>(path, ({ data }) => data[0]?.status === 'active');
      for (const name of runs) await api.post('/gpuaas/workload', { subscription_id: id, name });
      await startPods(
        api,
        { teamId, subscriptionId: id, volumeOf: (name) => volumes.get(volumeKey(team, name)) },
        pods,
      );
    }),
  );
}
