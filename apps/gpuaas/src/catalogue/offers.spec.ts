import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { priceChanged, type Price } from '@atoll/contracts/billing';
import { nodes, pools, regions, type AvailablePool } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

async function offers(of: { gpuaas_id: string }): Promise<AvailablePool[]> {
  return (await fixture.call(pools.available, { team_id: team.team_id, gpuaas_id: of.gpuaas_id }, team.member)).data;
}

/** What is offered of a pool that is alone in its GPU service, by profile. */
async function available(of: { gpuaas_id: string }): Promise<Record<string, number>> {
  const [pool] = await offers(of);
  return Object.fromEntries(pool?.profiles.map(({ profile, available_vgpus }) => [profile, available_vgpus]) ?? []);
}

const take = (pool: { pool_id: string }, profile: string, vgpus = 1) =>
  fixture.subscribe(team, { pool_id: pool.pool_id, profile, vgpus });

describe('what a pool offers', () => {
  it('is its terms and each profile with its memory, its room and its price', async () => {
    const pool = await fixture.pool({ profiles: ['1g.10gb', '1g.20gb', '7g.80gb'] }, { count: 2 });
    const profile = { unit_price: null, currency: null };
    expect(await offers(pool)).toEqual([
      {
        pool_id: pool.pool_id,
        pool_name: pool.pool_name,
        gpuaas_id: pool.gpuaas_id,
        region_id: pool.region_id,
        board: 'A100-80GB',
        sharing_mode: 'Spatial',
        isolation: 'hardware',
        profiles: [
          { ...profile, profile: '1g.10gb', v_ram_gb: 10, available_vgpus: 14 },
          { ...profile, profile: '1g.20gb', v_ram_gb: 20, available_vgpus: 8 },
          { ...profile, profile: '7g.80gb', v_ram_gb: 80, available_vgpus: 2 },
        ],
      },
    ]);
  });

  it('is told of one pool alone where it is named', async () => {
    const [pool, another] = [await fixture.pool(), await fixture.pool()];
    const named = async (asked: { pool_id: string; gpuaas_id?: string }) =>
      (await fixture.call(pools.available, { team_id: team.team_id, ...asked }, team.member)).data;
    const { pool_id } = pool;
    expect(await named({ pool_id })).toEqual(await offers(pool));
    expect(await named({ pool_id, gpuaas_id: another.gpuaas_id })).toEqual([]);
    expect(await named({ pool_id: '999999' })).toEqual([]);
  });

  it.each([
    ['mps', { mechanism: 'mps', replicas: 3 }, 'Spatial', 'software', 'mps-3', 26.67, 3],
    [
      'time slicing',
      { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 },
      'Temporal',
      'none',
      'ts-4',
      20,
      4,
    ],
  ] as const)(
    'by %s says how well tenants are kept apart',
    async (_, terms, sharing_mode, isolation, profile, v_ram_gb, available_vgpus) => {
      const [offer] = await offers(await fixture.pool(terms));
      expect(offer).toMatchObject({ sharing_mode, isolation, profiles: [{ profile, v_ram_gb, available_vgpus }] });
    },
  );

  it('of several profiles is the room for each alone, by intervals and not by sums', async () => {
    const pool = await fixture.pool({ profiles: ['1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'] });
    expect(await available(pool)).toEqual({ '1g.10gb': 7, '2g.20gb': 3, '3g.40gb': 2, '4g.40gb': 1, '7g.80gb': 1 });
    await take(pool, '3g.40gb');
    expect(await available(pool)).toEqual({ '1g.10gb': 4, '2g.20gb': 2, '3g.40gb': 1, '4g.40gb': 1, '7g.80gb': 0 });
    await take(pool, '1g.10gb', 4);
    expect(await available(pool)).toEqual({ '1g.10gb': 0, '2g.20gb': 0, '3g.40gb': 0, '4g.40gb': 0, '7g.80gb': 0 });
  });

  it('can be had: all of it, and not one more', async () => {
    const pool = await fixture.pool({ profiles: ['1g.10gb', '2g.20gb'] }, { count: 2 });
    await take(pool, '2g.20gb', 3);
    const { '1g.10gb': room = 0 } = await available(pool);
    await take(pool, '1g.10gb', room);
    expect(await available(pool)).toEqual({ '1g.10gb': 0, '2g.20gb': 0 });
    expect((await errorOf(take(pool, '1g.10gb'))).code).toBe('insufficient_capacity');
  });

  it('is not what fits only where a GPU falls back', async () => {
    const pool = await fixture.pool({ profiles: ['7g.80gb'], allow_fallback: true, temporal_replicas: 5 });
    expect(await available(pool)).toEqual({ '7g.80gb': 1 });
    await take(pool, '7g.80gb', 2);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', origin: 'dynamic_fallback' });
    expect(await available(pool)).toEqual({ '7g.80gb': 3 });
  });

  it('comes back with what is given back', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const held = await take(pool, 'mps-4', 3);
    await fixture.settle();
    expect(await available(pool)).toEqual({ 'mps-4': 1 });
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect(await available(pool)).toEqual({ 'mps-4': 4 });
  });

  it('with overcommit is slices × overcommit, less what is held, whatever runs', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4, overcommit: 3 }, { count: 2 });
    expect(await available(pool)).toEqual({ 'mps-4': 24 });
    const held = await take(pool, 'mps-4', 10);
    await fixture.settle();
    await fixture.start(team, held, 2);
    expect(await available(pool)).toEqual({ 'mps-4': 14 });
    await fixture.unsubscribe(team, held, true);
    await fixture.settle();
    expect(await available(pool)).toEqual({ 'mps-4': 24 });
  });

  it('with overcommit of several profiles is the part of a GPU that each is', async () => {
    const pool = await fixture.pool({ profiles: ['1g.10gb', '3g.40gb', '7g.80gb'], overcommit: 2 });
    expect(await available(pool)).toEqual({ '1g.10gb': 14, '3g.40gb': 4, '7g.80gb': 2 });
    await take(pool, '3g.40gb');
    // 2 GPUs less half of one.
    expect(await available(pool)).toEqual({ '1g.10gb': 10, '3g.40gb': 3, '7g.80gb': 1 });
  });

  it.each([
    ['', { mechanism: 'mps', replicas: 4 }],
    [' with overcommit', { mechanism: 'mps', replicas: 2, overcommit: 2 }],
  ] as const)('is nothing on a node that is cordoned, and what it was once it is not%s', async (_, terms) => {
    const [profile, pool] = [`mps-${terms.replicas}`, await fixture.pool(terms)];
    await fixture.call(nodes.cordon, { node_id: pool.node_id });
    expect(await available(pool)).toEqual({ [profile]: 0 });
    expect((await errorOf(take(pool, profile))).message).toContain('Available: nothing.');
    await fixture.call(nodes.uncordon, { node_id: pool.node_id });
    expect(await available(pool)).toEqual({ [profile]: 4 });
  });

  it('is nothing of a GPU that was lost, until its node is back in service', async () => {
    const nodeName = `node-${newId()}`;
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 4 }, { nodeName });
    const held = await take(pool, 'mps-4');
    await fixture.settle();
    await fixture.get(SimulatedFaults).inject(nodeName, 'vacate', 'fail');
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect(await available(pool)).toEqual({ 'mps-4': 0 });
    await fixture.work();
    expect((await fixture.node(pool.node_id)).status).toBe('init_failed');
    await fixture.pass(60);
    await fixture.settle();
    expect(await available(pool)).toEqual({ 'mps-4': 4 });
  });
});

describe('who is offered what', () => {
  it('is everybody of a team, in pages counted from 1; strangers find no team', async () => {
    const inventory = await fixture.inventory('A100-80GB', 3);
    const made: string[] = [];
    for (const id of inventory.gpu_ids) made.push((await fixture.poolOn(inventory, [id])).pool_id);
    const { gpuaas_id } = inventory;
    const viewer = { ...team.member, teams: [{ teamId: team.team_id, role: 'viewer' as const }] };
    const page = await fixture.call(pools.available, { team_id: team.team_id, gpuaas_id, limit: 2, page: 2 }, viewer);
    expect([page.data.map(({ pool_id }) => pool_id), page.pagination]).toEqual([
      made.slice(2),
      { page: 2, limit: 2, total: 3 },
    ]);
    const { member } = await fixture.team();
    for (const operation of [pools.available, pools.availableRegions]) {
      const foreign = await errorOf(
        fixture.call<{ team_id: string }, object>(operation, { team_id: team.team_id }, member),
      );
      const unknown = await errorOf(fixture.call<{ team_id: string }, object>(operation, { team_id: newId() }, member));
      expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
    }
    const nowhere = fixture.call(pools.available, { team_id: team.team_id, gpuaas_id: '999999999' }, team.member);
    expect((await errorOf(nowhere)).code).toBe('not_found');
  });

  it('are the regions in which there is a pool, with their GPU services', async () => {
    const { region_id } = await fixture.call(regions.create, {
      region_name: `region-${newId()}`,
      city: 'Kathmandu',
      country: 'NP',
    });
    const shown = async () => {
      const { pagination } = await fixture.call(
        pools.availableRegions,
        { team_id: team.team_id, limit: 1 },
        team.member,
      );
      const last = { team_id: team.team_id, limit: 1, page: pagination.total };
      const { data } = await fixture.call(pools.availableRegions, last, team.member);
      return data.find((region) => region.region_id === region_id);
    };
    const [empty, used] = [
      await fixture.call(regions.createGpuaas, { region_id, name: 'a' }),
      await fixture.call(regions.createGpuaas, { region_id, name: 'b' }),
    ];
    expect(await shown()).toBeUndefined();
    const asked = { gpuaas_id: used.gpuaas_id, node_name: `node-${newId()}`, gpus: [{ board: 'A100-80GB', count: 1 }] };
    const { node_id, gpus } = await fixture.call(nodes.register, asked);
    const inventory = { gpuaas_id: used.gpuaas_id, node_id, gpu_ids: gpus.map(({ gpu_id }) => gpu_id) };
    await fixture.poolOn(inventory, inventory.gpu_ids);
    const region = await shown();
    expect(region).toMatchObject({ city: 'Kathmandu', country: 'NP', gpuaas_ids: [used.gpuaas_id] });
    expect(region?.gpuaas_ids).not.toContain(empty.gpuaas_id);
  });
});

describe('the price of what is offered', () => {
  const day = 86_400_000;
  const at = (days: number) => new Date(Date.now() + days * day).toISOString();
  const tell = (more: Partial<Price>) =>
    fixture.tell(priceChanged, {
      price_id: newId(),
      sku: 'gpu.A100-80GB.mps-5',
      unit: 'vgpu',
      unit_price: '1',
      currency: 'USD',
      team_id: null,
      valid_from: at(-10),
      created_at: at(-20),
      replaced_at: null,
      ...more,
    });
  const profileOf = async (of: { gpuaas_id: string }) => (await offers(of))[0]?.profiles[0];
  const shown = async (of: { gpuaas_id: string }) => (await profileOf(of))?.unit_price;

  it('is none, then the general one, then the team’s own, each as the decimal text it was told in', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 5 });
    expect(await shown(pool)).toBeNull();
    await tell({ unit_price: '1.250000001' });
    expect(await shown(pool)).toBe('1.250000001');
    await tell({ team_id: (await fixture.team()).team_id, unit_price: '9' });
    expect(await shown(pool)).toBe('1.250000001');
    await tell({ team_id: team.team_id, unit_price: '0.75', valid_from: at(-30) });
    expect(await shown(pool)).toBe('0.75');
    await tell({ unit_price: '2', valid_from: at(-1) });
    expect(await shown(pool)).toBe('0.75');
  });

  it('is the latest that holds already, and not one that is to come', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 6 });
    const sku = 'gpu.A100-80GB.mps-6';
    await tell({ sku, unit_price: '3', valid_from: at(1) });
    expect(await shown(pool)).toBeNull();
    await tell({ sku, unit_price: '2', valid_from: at(-1) });
    await tell({ sku, unit_price: '1', valid_from: at(-2) });
    await tell({ sku, unit_price: '4', valid_from: at(2), team_id: team.team_id });
    expect(await shown(pool)).toBe('2');
  });

  it('is told with its currency, and there is none without a price', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 7 });
    expect(await profileOf(pool)).toMatchObject({ unit_price: null, currency: null });
    await tell({ sku: 'gpu.A100-80GB.mps-7', unit_price: '1.5', currency: 'EUR' });
    expect(await profileOf(pool)).toMatchObject({ unit_price: '1.5', currency: 'EUR' });
  });

  it('is in the currency of the others where a replica of a release that stored none was told of it', async () => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 8 });
    await fixture.query('UPDATE price SET currency = NULL');
    await tell({ sku: 'gpu.A100-80GB.mps-8', unit_price: '1.5' });
    await fixture.query(`UPDATE price SET currency = NULL WHERE sku = 'gpu.A100-80GB.mps-8'`);
    expect(await profileOf(pool)).toMatchObject({ unit_price: '1.5', currency: null });
    await tell({ sku: 'gpu.A100-80GB.other', currency: 'EUR' });
    expect(await profileOf(pool)).toMatchObject({ unit_price: '1.5', currency: 'EUR' });
  });
});
