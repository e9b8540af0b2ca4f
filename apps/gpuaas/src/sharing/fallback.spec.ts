import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ mostReturns: 3 });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const mps = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 } as const;

describe('a pool of MPS shares with overcommit', () => {
  it('lets its GPU fall back when no share is left, and brings it back when what runs fits again', async () => {
    const pool = await fixture.pool({ ...mps, overcommit: 2 });
    const subscription = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
    await fixture.settle();
    expect(await fixture.subscription(team, subscription)).toMatchObject({
      status: 'active',
      profile: 'mps-2',
      v_ram_gb: 40,
    });
    await fixture.start(team, subscription);
    await fixture.start(team, subscription);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null, tenants: [] });
    const third = await fixture.start(team, subscription);
    expect(third.status).toBe('pending');
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: 'to_temporal' });
    await fixture.settle();
    const fallen = await fixture.gpu(pool);
    expect(fallen).toMatchObject({ mode: 'Temporal', origin: 'dynamic_fallback', transition: null, slices: [] });
    expect(fallen.tenants.length).toBe(3);
    await fixture.stopWorkload(team, third);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({
      mode: 'Spatial',
      origin: 'configured',
      transition: null,
      tenants: [],
      slices: [{}, {}],
    });
  });
});

describe('a pool of MPS shares without overcommit', () => {
  /** A pool under whose only tenant another one comes and goes five times, with the mode after each. */
  const restless = async () => {
    const other = await fixture.team();
    const pool = await fixture.pool(mps);
    const subscription = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
    await fixture.settle();
    const modes: (string | null)[] = [];
    for (let times = 0; times < 5; times += 1) {
      const turn = await fixture.subscribe(other, { pool_id: pool.pool_id });
      await fixture.settle();
      await fixture.unsubscribe(other, turn);
      await fixture.settle();
      modes.push((await fixture.gpu(pool)).mode);
    }
    return { pool, subscription, modes };
  };

  it('is not switched under a tenant again and again by another one that comes and goes', async () => {
    const { pool, modes } = await restless();
    expect(modes).toEqual(['Spatial', 'Spatial', 'Spatial', 'Temporal', 'Temporal']);
    const [gpuId] = pool.gpu_ids;
    // Its returns were long ago, and it is looked at again.
    await fixture.query(
      `UPDATE machine_history SET at = at - interval '1 hour' WHERE machine = 'gpu' AND instance = $1`,
      [gpuId],
    );
    await fixture.query('UPDATE gpu SET parked_until = NULL, due_at = clock_timestamp() WHERE gpu_id = $1', [gpuId]);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', origin: 'configured', transition: null });
  });

  it('returns at once where it was switched too often and its last tenant leaves', async () => {
    const { pool, subscription } = await restless();
    await fixture.unsubscribe(team, subscription);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null });
  });
});

describe('a pool of MIG slices', () => {
  it('falls back only where nothing is leased, and returns when the last has gone', async () => {
    const pool: Inventory & { pool_id: string; pool_name: string } = await fixture.pool({
      profiles: ['3g.40gb'],
      allow_fallback: true,
      temporal_replicas: 4,
    });
    const three = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
    expect(three.status).toBe('subscribing');
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', origin: 'dynamic_fallback' });
    const fourth = await fixture.subscribe(team, { pool_id: pool.pool_id });
    const refused = await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id }));
    expect([refused.code, refused.message]).toEqual([
      'insufficient_capacity',
      `Pool ${pool.pool_name} has no capacity for 1 vGPU of 3g.40gb. Available: nothing.`,
    ]);
    await fixture.unsubscribe(team, three);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal' });
    await fixture.unsubscribe(team, fourth);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', slices: [], tenants: [] });
  });
});
