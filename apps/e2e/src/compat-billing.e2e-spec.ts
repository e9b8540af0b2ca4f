import { describe, expect, it } from '@jest/globals';
import { array, assert, asyncProperty, constantFrom, integer, nat, record, sample } from 'fast-check';
import { adminKey, call, compatUrl, createTeam, fresh, succeed, until, userKeyOf, type TeamView } from './client.js';

const zones = [
  'UTC',
  'Asia/Kathmandu',
  'Africa/Cairo',
  'Australia/Lord_Howe',
  'America/St_Johns',
  'Pacific/Chatham',
  'Asia/Beirut',
];
const kinds = ['gpuaas_pool', 'shared_storage', 'vm', 'pod', 'baremetal'] as const;

/**
 * Each report is rounded by itself, at 9 decimals: so far may a sum of a few dozen be from the whole, thousands of
 * times less than a cent.
 */
const roundings = 0.000_001;

interface Bill {
  timezone: string;
  total_cost: string;
}

interface Drawn {
  facts: { kind: number; hour: number; quantity: number }[];
  prices: { kind: number; day: number; price: number }[];
}

const drawn = record({
  facts: array(
    record({ kind: nat(4), hour: integer({ min: -24, max: 40 * 24 }), quantity: integer({ min: 0, max: 9 }) }),
    {
      minLength: 3,
      maxLength: 20,
    },
  ),
  prices: array(
    record({ kind: nat(4), day: integer({ min: -1, max: 35 }), price: integer({ min: 1, max: 999_999_999 }) }),
    {
      maxLength: 8,
    },
  ),
});

const april = Date.UTC(2025, 3, 1);
const at = (ms: number): string => new Date(april + ms).toISOString();
const wall = (hour: number): string => at(hour * 3_600_000).slice(0, 16);
const old = <Body>(path: string, key = adminKey): Promise<Body> => succeed<Body>('GET', path, { url: compatUrl, key });

async function tell(team: TeamView, skus: readonly string[], { facts, prices }: Drawn): Promise<void> {
  const events = facts.map(({ kind, hour, quantity }) => ({
    source: 'compat',
    id: fresh('fact'),
    time: at(hour * 3_600_000 + 1_234_567),
    resource_id: `${kinds[kind]}:1`,
    kind: kinds[kind],
    sku: skus[kind],
    quantity,
    team_id: team.id,
    workspace_id: team.workspaces[0]?.id,
    ...(kind === 0 && { pool_id: 7 }),
  }));
  if (events.length > 0) await succeed('POST', '/usage-events', { key: adminKey, body: { events } });
  for (const { kind, day, price } of prices) {
    const body = {
      sku: skus[kind],
      unit: 'unit',
      unit_price: `0.${String(price).padStart(9, '0')}`,
      valid_from: at(day * 86_400_000),
      force: true,
    };
    await call('POST', '/price', { key: adminKey, body });
  }
}

/** What the mount says of the range: by the call for each kind, as a shop adds them up. */
async function sumOfReports(team: TeamView, key: string, range: string): Promise<number> {
  const [summary, pools, storage] = await Promise.all([
    old<{ total_cost: number; instance_billing_summary: { cost: number }[] }>(
      `/team-billing/summary/${team.id}/${range}?timezone=local`,
      key,
    ),
    old<{ total_cost: number }>(`/team-billing/gpuaas-pool/${team.id}/${range}/monthly?timezone=Local`, key),
    old<{ total_cost: number }>(`/team-billing/shared-storage/${team.id}/${range}/monthly?timezone=LOCAL`, key),
  ]);
  const instances = summary.instance_billing_summary.reduce((sum, { cost }) => sum + cost, 0);
  expect(Math.abs(summary.total_cost - instances - pools.total_cost - storage.total_cost)).toBeLessThan(roundings);
  return instances + pools.total_cost + storage.total_cost;
}

/**
 * What a range cost by the call that wallets are charged by. An hour that the clocks skip is refused, and costs
 * nothing.
 */
async function costOf(team: TeamView, key: string, start: string, end: string): Promise<number> {
  const path = `/team-billing/group-by-workspace/${team.id}/${start}/${end}/hourly?timezone=local`;
  const ask = () => call<{ current_month_total_cost: number; message?: string }>('GET', path, { url: compatUrl, key });
  // A team that asks for many reports at once waits for its turn, and on a busy machine too long: it is told to come
  // again.
  const { status, body } = await until(ask, (answer) => answer.status !== 429 && answer.status !== 503);
  if (status === 400) expect(body.message).toMatch(/clocks in .* skip/);
  else expect(status).toBe(200);
  return status === 200 ? body.current_month_total_cost : 0;
}

describe('the money of an old shop', () => {
  it('adds up to the bill of the main API in every zone: by kind for the month, by hour for the day, with late facts and prices', async () => {
    await assert(
      asyncProperty(
        drawn,
        drawn,
        constantFrom(...zones),
        integer({ min: 0, max: 29 }),
        async (first, late, zone, day) => {
          const { team } = await createTeam(fresh('Billed'), ['team_owner']);
          const skus = kinds.map((kind) => fresh(kind));
          const key = await userKeyOf(team.members[0]?.email ?? '');
          await succeed('PUT', '/user/profile', { key, body: { timezone: zone } });
          for (const told of [first, late]) {
            await tell(team, skus, told);
            const main = await succeed<Bill>(
              'GET',
              `/team-billing/${team.id}/2025-04-01T00:00:00/2025-05-01T00:00:00/daily/local`,
              { key },
            );
            expect(main.timezone).toBe(zone);
            expect(
              Math.abs((await sumOfReports(team, key, '2025-04-01T00:00/2025-04-30T23:59')) - Number(main.total_cost)),
            ).toBeLessThan(roundings);
            const hours = Array.from({ length: 24 }, (_, hour) => day * 24 + hour);
            const costs = await Promise.all(hours.map((hour) => costOf(team, key, wall(hour), wall(hour + 1))));
            const ofDay = await costOf(team, key, wall(day * 24), wall(day * 24 + 24));
            expect(Math.abs(costs.reduce((sum, cost) => sum + cost, 0) - ofDay)).toBeLessThan(roundings);
          }
        },
      ),
      // To make a failure smaller would take minutes.
      { numRuns: 5, endOnFailure: true },
    );
  });

  it('is nobody else’s: neither the bill of a team nor that of a workspace, by none of its calls', async () => {
    const ours = await createTeam(fresh('Ours'), ['team_owner', 'viewer']);
    const theirs = await createTeam(fresh('Theirs'), ['team_owner']);
    const [facts] = sample(drawn, 1);
    await tell(theirs.team, kinds.map(fresh), facts ?? { facts: [], prices: [] });
    const paths = (id: string, workspace = '') => [
      `/team-billing/${id}/2025-04-01/2025-05-01/daily`,
      `/workspace-billing/${workspace}/2025-04-01/2025-05-01/daily`,
      `/team-billing/summary/${id}/2025-04-01/2025-05-01`,
      `/team-billing/group-by-workspace/${id}/2025-04-01/2025-05-01/daily`,
      `/team-billing/gpuaas-pool/${id}/2025-04-01/2025-05-01/daily?region_id=all`,
      `/team-billing/shared-storage/${id}/2025-04-01/2025-05-01/daily?region_id=all`,
      `/gpuaas/${id}/metrics?start_date=2025-04-01&end_date=2025-04-30`,
      `/gpuaas/${id}/metrics-graph?start_timestamp=2025-04-01T00:00&end_timestamp=2025-05-01T00:00&granularity=1w`,
    ];
    const statuses = async (team: TeamView, key = ''): Promise<number[]> =>
      Promise.all(
        paths(team.id, team.workspaces[0]?.id).map(
          async (path) => (await call('GET', path, { url: compatUrl, key })).status,
        ),
      );
    const all = (status: number) => paths('').map(() => status);
    expect(await statuses(theirs.team, ours.keys.team_owner)).toEqual(all(404));
    expect(await statuses(theirs.team, theirs.keys.team_owner)).toEqual(all(200));
    expect(await statuses(ours.team, ours.keys.viewer)).toEqual(all(403));
  });

  it('is asked for by the fields of each call, by which a range that is refused is told', async () => {
    const { team, keys } = await createTeam(fresh('Ranges'), ['team_owner']);
    const faultOf = async (path: string) => {
      const answer = await call<{ errors: { field: string; message: string }[] }>('GET', path, {
        url: compatUrl,
        key: keys.team_owner,
      });
      expect(answer.status).toBe(400);
      return answer.body.errors[0];
    };
    const graph = `/gpuaas/${team.id}/metrics-graph?start_timestamp=2026-03-01T00:00:00Z`;
    const unreal = `/gpuaas/${team.id}/metrics-graph?start_timestamp=2026-02-30T00:00:00Z`;
    expect(await faultOf(unreal)).toMatchObject({ field: 'start_timestamp' });
    expect(await faultOf(`${graph}&end_timestamp=2026-02-01T00:00:00Z`)).toEqual({
      field: 'end_timestamp',
      message: 'end_timestamp must be later than start_timestamp',
    });
    expect(await faultOf(`${graph}&end_timestamp=2028-03-01T00:00:00Z&granularity=1h`)).toEqual({
      field: 'end_timestamp',
      message: 'end_timestamp must be at most 366 days after start_timestamp where granularity is 1h',
    });
    expect(await faultOf(`/gpuaas/${team.id}/metrics?start_date=2010-01-01&end_date=2026-01-01`)).toEqual({
      field: 'end_date',
      message: 'end_date must be at most 10 years after start_date',
    });
  });
});
