import type { CompatCase } from './compat-case.js';
import type { Installation } from './installation.js';

const october = '2025-10-01T00:00:00/2025-11-01T00:00:00';

interface Pair {
  old: string;
  /** Asked at once, as the mount does. */
  main: readonly string[];
}

/** Old listings and reports of one team with 20 members and 600 facts. */
export async function makeReads(platform: Installation, mount: Installation): Promise<CompatCase[]> {
  return Object.entries(await fill(platform)).map(([name, { old, main }]) => ({
    name,
    old: () => mount.call('GET', old),
    main: () => Promise.all(main.map((path) => platform.call('GET', path))),
  }));
}

async function fill(platform: Installation): Promise<Record<string, Pair>> {
  const members = Array.from({ length: 20 }, (_, at) => ({
    email: `m${at}@example.com`,
    name: `M ${at}`,
    role: at === 0 ? 'team_owner' : 'member',
  }));
  const team = await platform.send<{ id: string; workspaces: { id: string }[] }>('POST', '/team', {
    name: 'Bench',
    members,
  });
  const events = Array.from({ length: 600 }, (_, at) => {
    const kind = ['gpuaas_pool', 'shared_storage', 'vm'][at % 3] ?? 'vm';
    return {
      source: 'bench',
      id: String(at),
      time: new Date(Date.UTC(2025, 9, 1 + (at % 30), at % 24)).toISOString(),
      resource_id: `${kind}:${at % 12}`,
      kind,
      sku: `${kind}.x`,
      quantity: at % 5,
      team_id: team.id,
      workspace_id: team.workspaces[0]?.id,
      ...(kind === 'gpuaas_pool' && { pool_id: 1 + (at % 4) }),
    };
  });
  await platform.send('POST', '/usage-events', { events });
  const { id } = team;
  const bill = `/team-billing/${id}/${october}/monthly`;
  return {
    'GET /team/{id}': { old: `/team/${id}`, main: [`/team/${id}`] },
    'GET /team/{id}/members': { old: `/team/${id}/members?itemsPerPage=20`, main: [`/team/${id}/members?limit=20`] },
    'GET /workspace': { old: `/workspace?teamId=${id}`, main: [`/workspace?team_id=${id}`] },
    'GET /team-billing/gpuaas-pool': {
      old: `/team-billing/gpuaas-pool/${id}/${october}/daily`,
      main: [`/team-billing/gpuaas-pool/${id}/${october}/daily/all`],
    },
    'GET /team-billing/shared-storage': {
      old: `/team-billing/shared-storage/${id}/${october}/daily`,
      main: [`/team-billing/shared-storage/${id}/${october}/daily/all`],
    },
    'GET /team-billing': {
      old: `/team-billing/${id}/${october}/daily`,
      main: [bill, `/team-billing/group-by-workspace/${id}/${october}/monthly`],
    },
    'GET /gpuaas/available-pools': {
      old: `/gpuaas/available-pools?team_id=${id}`,
      main: [`/gpuaas/available-pools?team_id=${id}&limit=100`],
    },
  };
}
