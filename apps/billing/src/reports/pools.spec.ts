import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { UsageEvent } from '@atoll/contracts/billing';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam, brief } from './report-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const aDay = { from: '2025-03-10', to: '2025-03-11' };
const allDay = (vgpus: number) =>
  [
    ['2025-03-10', vgpus],
    ['2025-03-11', 0],
  ] as const;

function subscription(id: number, pool: number, attributes: UsageEvent['attributes'] = {}): Partial<UsageEvent> {
  return { resource_id: `gpuaas_pool:${id}`, kind: 'gpuaas_pool', pool_id: String(pool), region_id: '1', attributes };
}

describe('the report of pools', () => {
  it('has each pool with its subscriptions, by number, and nothing besides', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('gpu.A100-80GB.1g.10gb', '1', '2025-01-01');
    await team.holds(
      'gpu.A100-80GB.1g.10gb',
      allDay(2),
      subscription(42, 10, { pool_name: 'ten', profile: '1g.10gb', v_ram_gb: 10 }),
    );
    await team.holds(
      'gpu.A100-80GB.1g.10gb',
      allDay(1),
      subscription(43, 10, { pool_name: 'ten', profile: '1g.10gb', v_ram_gb: 10 }),
    );
    await team.holds('gpu.A100-80GB.1g.10gb', allDay(4), subscription(44, 9));
    await team.holds('vm', allDay(1));
    const report = await team.pools(aDay);
    expect(report.scope).toEqual({ team_id: team.id, region_id: 'all' });
    expect(report.total_cost).toBe('168');
    const subscriptions = [
      { subscription_id: '42', profile: '1g.10gb', v_ram_gb: 10, vgpu_hours: 48, total_cost: '48' },
      { subscription_id: '43', profile: '1g.10gb', v_ram_gb: 10, vgpu_hours: 24, total_cost: '24' },
    ];
    const ten = {
      pool_id: '10',
      pool_name: 'ten',
      region_id: '1',
      v_ram_gb: 10,
      vgpu_hours: 72,
      total_cost: '72',
      subscriptions,
    };
    expect(report.pools).toMatchObject([
      { pool_id: '9', pool_name: null, v_ram_gb: null, vgpu_hours: 96, total_cost: '96' },
      ten,
    ]);
    expect(report.pools.map(brief)).toEqual([
      [['2025-03-10T00:00:00Z', '96', 96]],
      [['2025-03-10T00:00:00Z', '72', 72]],
    ]);
  });

  it('shows no size of memory for a pool that sells two profiles, and the profile of each from what was told or its SKU', async () => {
    const team = await BilledTeam.of(billing);
    const [small, large] = ['gpu.A100-80GB.1g.10gb', 'gpu.A100-80GB.3g.40gb'];
    await team.price(small, '1', '2025-01-01');
    await team.price(large, '3', '2025-01-01');
    await team.holds(small, allDay(1), subscription(42, 10, { profile: '1g.10gb', v_ram_gb: 10 }));
    await team.holds(large, allDay(1), subscription(43, 10, { v_ram_gb: 40 }));
    const [pool] = (await team.pools(aDay)).pools;
    expect(pool).toMatchObject({ v_ram_gb: null, vgpu_hours: 48, total_cost: '96' });
    expect(pool?.intervals[0]?.items.map(({ sku, cost }) => [sku, cost])).toEqual([
      [team.sku(small), '24'],
      [team.sku(large), '72'],
    ]);
    expect(pool?.subscriptions.map(({ profile, v_ram_gb }) => [profile, v_ram_gb])).toEqual([
      ['1g.10gb', 10],
      [team.sku('3g.40gb'), 40],
    ]);
  });

  it('shows the memory of a slice as its SKU has it where no fact tells it, and so the one size of the pool', async () => {
    const team = await BilledTeam.of(billing);
    const sold = (id: number, pool: number, sku: string, attributes: UsageEvent['attributes'] = {}) =>
      team.holds('gpu', allDay(1), { ...subscription(id, pool, attributes), sku });
    await sold(42, 10, 'gpu.L40S-48GB.mps-4', { v_ram_gb: 12 });
    await sold(43, 10, 'gpu.L40S-48GB.mps-4');
    await sold(44, 11, 'gpu.A100-80GB.3g.40gb');
    await sold(45, 12, 'gpu.A100-80GB.3g.40gb', { v_ram_gb: 41 });
    for (const [pool, sku] of [
      'gpu.A100-80GB.9g.90gb',
      'gpu.A100-80GB.mps-99',
      'gpu.X-1GB.1g.1gb',
      'gpu',
      'x',
    ].entries())
      await sold(50 + pool, 50 + pool, sku);
    await sold(60, 60, 'gpu.X-1GB.1g.1gb', { v_ram_gb: 1 });
    await sold(61, 60, 'gpu.X-1GB.1g.1gb');
    const { pools } = await team.pools(aDay);
    expect(pools.map((pool) => [pool.v_ram_gb, ...pool.subscriptions.map(({ v_ram_gb }) => v_ram_gb)])).toEqual([
      [12, 12, 12],
      [40, 40],
      [41, 41],
      ...Array.from({ length: 5 }, () => [null, null]),
      [1, 1, null],
    ]);
  });

  it('shows what was told last, whenever it was told', async () => {
    const team = await BilledTeam.of(billing);
    await team.holds('gpu', [['2025-03-10', 1]], subscription(42, 10, { pool_name: 'old', v_ram_gb: 10 }));
    await team.holds('gpu', [['2025-03-12', 0]], subscription(42, 10, { pool_name: 'new' }));
    await team.holds('gpu', [['2025-03-11', 1]], subscription(42, 10, { pool_name: 'between', v_ram_gb: 20 }));
    expect((await team.pools(aDay)).pools).toMatchObject([{ pool_name: 'new', v_ram_gb: 20 }]);
  });

  it('shows the name that a pool has now for months before it was named, and of the team’s own facts alone', async () => {
    const [team, other] = [await BilledTeam.of(billing), await BilledTeam.of(billing)];
    await team.holds('gpu', allDay(1), subscription(42, 10));
    expect((await team.pools(aDay)).pools).toMatchObject([{ pool_name: null }]);
    await other.holds('gpu', [['2025-05-01', 1]], subscription(43, 10, { pool_name: 'another team’s' }));
    expect((await team.pools(aDay)).pools).toMatchObject([{ pool_name: null }]);
    await team.holds('gpu', [['2025-05-01', 1]], subscription(44, 10, { pool_name: 'ten' }));
    expect((await team.pools(aDay)).pools).toMatchObject([
      { pool_name: 'ten', subscriptions: [{ subscription_id: '42' }] },
    ]);
  });

  it('shows no size of memory for a pool that sells several profiles, also where one of them is billed', async () => {
    const team = await BilledTeam.of(billing);
    await team.holds('gpu.A.1g', allDay(1), subscription(42, 10, { v_ram_gb: 10 }));
    await team.holds(
      'gpu.A.1g',
      allDay(1),
      subscription(43, 11, { pool_name: 'eleven', pool_profiles: 1, v_ram_gb: 10 }),
    );
    await team.holds(
      'gpu.A.1g',
      allDay(1),
      subscription(44, 12, { pool_name: 'twelve', pool_profiles: 3, v_ram_gb: 10 }),
    );
    const sizes = async () => (await team.pools(aDay)).pools.map(({ v_ram_gb }) => v_ram_gb);
    // A pod that runs in a pool is no profile of it.
    await team.holds('pod', allDay(1), { ...subscription(46, 11), resource_id: 'pod:46', kind: 'pod' });
    expect(await sizes()).toEqual([10, 10, null]);
    await team.holds('gpu.A.3g', [['2025-05-01', 1]], subscription(45, 10, { v_ram_gb: 40 }));
    expect(await sizes()).toEqual([null, 10, null]);
  });

  it('bills a subscription that changed its pool to each for its time, by what was told there', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('gpu', '1', '2025-01-01');
    await team.holds(
      'gpu',
      [['2025-03-10', 1]],
      subscription(42, 10, { pool_name: 'ten', profile: 'small', v_ram_gb: 10 }),
    );
    await team.holds(
      'gpu',
      [
        ['2025-03-10T18:00:00', 1],
        ['2025-03-11', 0],
      ],
      subscription(42, 11, { pool_name: 'eleven', profile: 'large', v_ram_gb: 20 }),
    );
    const { pools } = await team.pools(aDay);
    const shown = pools.map(({ pool_name, total_cost, subscriptions }) => [
      pool_name,
      total_cost,
      subscriptions.map((one) => [one.total_cost, one.profile, one.v_ram_gb]),
    ]);
    expect(shown).toEqual([
      ['ten', '18', [['18', 'small', 10]]],
      ['eleven', '6', [['6', 'large', 20]]],
    ]);
  });

  it('shares the cent of a pool out to its subscriptions', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('gpu', '0.000000001', '2025-01-01');
    for (const id of [41, 42, 43])
      await team.holds(
        'gpu',
        [
          ['2025-03-10', 1],
          ['2025-03-10T00:20:00', 0],
        ],
        subscription(id, 10),
      );
    const [pool] = (await team.pools(aDay)).pools;
    expect(pool?.total_cost).toBe('0.000000001');
    expect(pool?.subscriptions.map(({ total_cost }) => total_cost)).toEqual(['0.000000001', '0', '0']);
  });

  it('has, for the compatibility mount, the exact price of a vGPU hour besides: one that applied, or the mean of several', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('gpu', '2.5', '2025-01-01');
    await team.price('other', '1', '2025-01-01');
    await team.price('other', '4', '2025-03-10T00:00:01');
    const until = (time: string) =>
      [
        ['2025-03-10', 1],
        [`2025-03-10T${time}`, 0],
      ] as const;
    await team.holds('gpu', until('00:07:13.001'), subscription(42, 10));
    await team.holds('other', until('00:00:03'), subscription(43, 11));
    await team.holds('unpriced', until('00:07:13.001'), subscription(44, 12));
    const { pools, ...report } = await team.ratedPools(aDay);
    const shown = pools.map(({ total_cost, vgpu_hours, vgpu_hour_cost }) => [total_cost, vgpu_hours, vgpu_hour_cost]);
    expect(shown).toEqual([
      ['0.300695139', 0.120278056, '2.5'],
      // A third of the time at 1, the rest at 4.
      ['0.0025', 0.000833333, '3'],
      ['0', 0.120278056, '0'],
    ]);
    const plain = pools.map(({ vgpu_hour_cost: _cost, ...pool }) => pool);
    expect({ ...report, pools: plain }).toEqual({ ...(await team.pools(aDay)), as_of: report.as_of });
  });

  it('is of one region where it is asked for', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('gpu', '1', '2025-01-01');
    await team.holds('gpu', allDay(1), { ...subscription(42, 10), region_id: '1' });
    await team.holds('gpu', allDay(2), { ...subscription(43, 20), region_id: '2' });
    const of = async (region: string) =>
      (await team.pools({ ...aDay, region })).pools.map(({ pool_id, region_id }) => [pool_id, region_id]);
    expect(await of('1')).toEqual([['10', '1']]);
    expect(await of('2')).toEqual([['20', '2']]);
    expect(await of('all')).toHaveLength(2);
    expect((await team.pools({ ...aDay, region: '2' })).scope).toEqual({ team_id: team.id, region_id: '2' });
  });
});
