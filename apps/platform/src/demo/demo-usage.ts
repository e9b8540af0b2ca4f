import type { DemoApi } from './demo-api.js';
import type { DemoPool } from './demo-inventory.js';
import type { DemoTeam } from './demo-teams.js';

const hourMs = 3_600_000;
const days = 62;
const batch = 1_000;

interface Price {
  sku: string;
  unit: string;
  before: string;
  now: string;
}

/** What a unit costs an hour: two months ago, and since the first of this month. */
const prices: readonly Price[] = [
  { sku: 'gpu.A100-80GB.1g.10gb', unit: 'vgpu', before: '0.42', now: '0.39' },
  { sku: 'gpu.A100-80GB.2g.20gb', unit: 'vgpu', before: '0.80', now: '0.76' },
  { sku: 'gpu.A100-80GB.3g.40gb', unit: 'vgpu', before: '1.52', now: '1.45' },
  { sku: 'gpu.A100-80GB.mps-3', unit: 'vgpu', before: '1.10', now: '1.10' },
  { sku: 'gpu.H100-80GB.3g.40gb', unit: 'vgpu', before: '2.30', now: '2.15' },
  { sku: 'gpu.H100-80GB.7g.80gb', unit: 'vgpu', before: '4.10', now: '3.90' },
  { sku: 'gpu.L40S-48GB.mps-4', unit: 'vgpu', before: '0.31', now: '0.31' },
  { sku: 'gpu.L4-24GB.ts-6', unit: 'vgpu', before: '0.09', now: '0.11' },
  { sku: 'storage.shared', unit: 'gb', before: '0.00012', now: '0.00012' },
  { sku: 'vm.standard-2', unit: 'instance', before: '0.09', now: '0.09' },
  { sku: 'vm.standard-4', unit: 'instance', before: '0.17', now: '0.17' },
  { sku: 'vm.memory-8', unit: 'instance', before: '0.52', now: '0.52' },
  { sku: 'baremetal.a100-80gb-x4', unit: 'instance', before: '6.40', now: '6.40' },
  { sku: 'baremetal.h100-80gb-x8', unit: 'instance', before: '28.00', now: '26.50' },
];

export async function setPrices(api: DemoApi, nowMs: number): Promise<void> {
  const month = new Date(nowMs).toISOString().slice(0, 7);
  for (const { sku, unit, before, now } of prices) {
    await api.post('/price', {
      sku,
      unit,
      unit_price: before,
      valid_from: new Date(nowMs - (days + 1) * 24 * hourMs).toISOString(),
      force: true,
    });
    if (now !== before)
      await api.post('/price', { sku, unit, unit_price: now, valid_from: `${month}-01T00:00:00Z`, force: true });
  }
}

/** Something that was held over the two months, and how much of it at a time. */
interface Series {
  team: string;
  workspace: string;
  resource: string;
  name: string;
  kind: 'gpuaas_pool' | 'vm' | 'baremetal' | 'shared_storage';
  sku: string;
  pool?: string;
  /** Units by hour of the day and day of the week (0: Sunday); `day` counts from the start. */
  units: (hour: number, weekday: number, day: number) => number;
}

const isWorkday = (weekday: number) => weekday > 0 && weekday < 6;

const series: readonly Series[] = [
  {
    team: 'Protein Lab',
    workspace: 'folding',
    resource: 'gpuaas_pool:demo-folding',
    name: 'folding',
    kind: 'gpuaas_pool',
    sku: 'gpu.A100-80GB.3g.40gb',
    pool: 'a100-slices',
    units: (hour, weekday, day) => (hour < 7 || hour > 19 ? 4 + (day % 3) : isWorkday(weekday) ? 2 : 3),
  },
  {
    team: 'Protein Lab',
    workspace: 'teaching',
    resource: 'gpuaas_pool:demo-teaching',
    name: 'course',
    kind: 'gpuaas_pool',
    sku: 'gpu.A100-80GB.1g.10gb',
    pool: 'a100-slices',
    units: (hour, weekday) => (isWorkday(weekday) && hour >= 8 && hour < 16 ? 9 : 0),
  },
  {
    team: 'Protein Lab',
    workspace: 'folding',
    resource: 'shared_storage:demo-structures',
    name: 'structures',
    kind: 'shared_storage',
    sku: 'storage.shared',
    units: (_hour, _weekday, day) => 2_000 + Math.floor(day / 7) * 250,
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'training',
    resource: 'gpuaas_pool:demo-vision',
    name: 'vision',
    kind: 'gpuaas_pool',
    sku: 'gpu.H100-80GB.7g.80gb',
    pool: 'h100-large',
    units: (hour, weekday, day) => (day % 9 === 0 ? 0 : isWorkday(weekday) && hour >= 6 && hour < 22 ? 2 : 1),
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'inference',
    resource: 'gpuaas_pool:demo-serving',
    name: 'serving',
    kind: 'gpuaas_pool',
    sku: 'gpu.L40S-48GB.mps-4',
    pool: 'l40s-shared',
    units: (hour, weekday, day) =>
      1 +
      Math.round((isWorkday(weekday) ? 4 : 2) * Math.max(0, Math.sin(((hour - 5) / 24) * Math.PI * 2))) +
      (day > 40 ? 1 : 0),
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'default',
    resource: 'vm:demo-gateway',
    name: 'robot-gateway',
    kind: 'vm',
    sku: 'vm.standard-4',
    units: () => 1,
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'training',
    resource: 'baremetal:demo-sweep',
    name: 'hyper-sweep',
    kind: 'baremetal',
    sku: 'baremetal.a100-80gb-x4',
    units: (_hour, _weekday, day) => ((day >= 20 && day < 26) || (day >= 48 && day < 51) ? 1 : 0),
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    resource: 'gpuaas_pool:demo-fraud',
    name: 'fraud',
    kind: 'gpuaas_pool',
    sku: 'gpu.L4-24GB.ts-6',
    pool: 'l4-turns',
    units: (hour, weekday) => (isWorkday(weekday) ? (hour >= 9 && hour < 18 ? 6 : 2) : 1),
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    resource: 'gpuaas_pool:demo-trial',
    name: 'trial of a new board',
    kind: 'gpuaas_pool',
    sku: 'gpu.A30-24GB.1g.6gb',
    pool: 'l4-turns',
    units: (_hour, _weekday, day) => (day > 57 ? 1 : 0),
  },
];

/** Two months of facts, up to now; one SKU has no price. Returns how many. */
export async function tellUsage(
  api: DemoApi,
  teams: readonly DemoTeam[],
  pools: ReadonlyMap<string, DemoPool>,
  nowMs: number,
): Promise<number> {
  const events = series.flatMap((entry) => factsOf(entry, teams, pools, nowMs));
  for (let at = 0; at < events.length; at += batch)
    await api.post('/usage-events', { events: events.slice(at, at + batch) });
  return events.length;
}

/** A fact whenever the quantity changes, and its end now, where what runs takes over. */
function factsOf(
  entry: Series,
  teams: readonly DemoTeam[],
  pools: ReadonlyMap<string, DemoPool>,
  nowMs: number,
): object[] {
  const team = teams.find(({ name }) => name === entry.team);
  const pool = pools.get(entry.pool ?? '');
  const startMs = Math.floor(nowMs / (24 * hourMs) - days) * 24 * hourMs;
  const endMs = Math.floor(nowMs / 60_000) * 60_000;
  const fact = (timeMs: number, quantity: number) => ({
    source: 'demo',
    id: `${entry.resource}@${timeMs}`,
    time: new Date(timeMs).toISOString(),
    resource_id: entry.resource,
    resource_name: entry.name,
    kind: entry.kind,
    sku: entry.sku,
    quantity,
    team_id: team?.teamId,
    workspace_id: team?.workspaces.get(entry.workspace),
    ...(pool && { pool_id: pool.poolId, region_id: pool.regionId }),
  });
  const facts: object[] = [];
  let held = 0;
  for (let atMs = startMs; atMs < endMs; atMs += hourMs) {
    const at = new Date(atMs);
    const units = entry.units(at.getUTCHours(), at.getUTCDay(), Math.floor((atMs - startMs) / (24 * hourMs)));
    if (units !== held) facts.push(fact(atMs, units));
    held = units;
  }
  if (held > 0) facts.push(fact(endMs, 0));
  return facts;
}
