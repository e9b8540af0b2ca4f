import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { freePort } from '@atoll/testing';
import { createDatabase } from './databases.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { stopAll } from './processes.js';

/** `npm run bench:compat`: old calls beside the operations that they map to, one after the other. */
const { values } = parseArgs({ options: { calls: { type: 'string', default: '300' } } });
const goal = 1.5;
const october = '2025-10-01T00:00:00/2025-11-01T00:00:00';

interface Pair {
  old: string;
  /** Asked at once, as the mount does. */
  main: readonly string[];
}

async function fill(platform: Installation): Promise<Record<string, Pair>> {
  const members = Array.from({ length: 20 }, (_, at) => ({
    email: `m${at}@example.com`,
    name: `M ${at}`,
    role: at === 0 ? 'team_owner' : 'member',
  }));
  const team = await platform.send<{ id: string; workspaces: { id: string }[] }>('POST', '/team', { name: 'Bench', members });
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
  const region = '/all';
  return {
    'GET /team/{id}': { old: `/team/${id}`, main: [`/team/${id}`] },
    'GET /team/{id}/members': { old: `/team/${id}/members?itemsPerPage=20`, main: [`/team/${id}/members?limit=20`] },
    'GET /workspace': { old: `/workspace?teamId=${id}`, main: [`/workspace?team_id=${id}`] },
    'GET /team-billing/gpuaas-pool': {
      old: `/team-billing/gpuaas-pool/${id}/${october}/daily`,
      main: [`/team-billing/gpuaas-pool/${id}/${october}/daily${region}`],
    },
    'GET /team-billing/shared-storage': {
      old: `/team-billing/shared-storage/${id}/${october}/daily`,
      main: [`/team-billing/shared-storage/${id}/${october}/daily${region}`],
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

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  const compatPort = await freePort();
  process.env.ATOLL_COMPAT_PORT = String(compatPort);
  const adminKey = createApiKey();
  const platform = await Installation.start(await createDatabase(postgres.url, 'bench_compat'), join(folder, 'platform'), adminKey, 4);
  const [load] = loadavg();
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}, load average ${load?.toFixed(1)}; p50 of ${values.calls} calls\n`,
  );
  const mount = platform.beside(compatPort);
  for (const [name, { old, main }] of Object.entries(await fill(platform))) {
    const medians = await mediansInTurn(
      { old: () => mount.call('GET', old), main: () => Promise.all(main.map((path) => platform.call('GET', path))) },
      Number(values.calls),
    );
    const ratio = medians.old / medians.main;
    const verdict = ratio <= goal ? 'met' : 'MISSED';
    console.log(
      `  ${name.padEnd(34)} old ${medians.old.toFixed(2)} ms, main ${medians.main.toFixed(2)} ms: ${ratio.toFixed(2)} times (goal ${goal}: ${verdict})`,
    );
  }
  mount.close();
  await platform.stop();
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
