import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Pool, Subscription } from '@atoll/contracts/gpuaas';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let pool: Pool & Inventory;
let held: Subscription;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  team = await fixture.team();
  pool = await fixture.pool({ mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 });
  held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 2 });
  await fixture.settle();
});

const gpu = () => fixture.gpu(pool);
const statesOf = async (gpuId: string) => {
  const rows = await fixture.query<{ to_state: string }>(
    `SELECT to_state FROM machine_history WHERE machine = 'gpu' AND instance = $1 ORDER BY id`,
    [gpuId],
  );
  return rows.map(({ to_state }) => to_state);
};
/** The device has been asked for so many layouts of which the platform, on a database of before, knows nothing. */
const ahead = async (generation: number, mode: 'Spatial' | 'Temporal' = 'Spatial') =>
  fixture.query('UPDATE simulated_device SET generation = $2, mode = $3 WHERE uuid = $1', [
    (await gpu()).uuid,
    generation,
    mode,
  ]);

describe('a device that was asked for more than the platform remembers', () => {
  it.each([8, 9, 1_000, 1_001])(
    'is caught up with in one step, and switches as it is asked: generation %i',
    async (generation) => {
      const before = (await statesOf((await gpu()).gpu_id)).length;
      await ahead(generation);
      const third = await fixture.subscribe(team, { pool_id: pool.pool_id });
      await fixture.settle();
      expect(await gpu()).toMatchObject({ mode: 'Temporal', transition: null, reason: null });
      expect((await fixture.subscription(team, third)).status).toBe('active');
      expect((await statesOf((await gpu()).gpu_id)).slice(before)).toEqual(['to_temporal', 'temporal']);
      expect((await fixture.node(pool.node_id)).status).toBe('ready');
    },
  );

  it('is prepared in one go when its node is initialised', async () => {
    await ahead(500, 'Temporal');
    await fixture.query(
      `UPDATE gpu SET state = 'preparing', deadline_at = clock_timestamp() + interval '1 minute', due_at = clock_timestamp() WHERE gpu_id = $1`,
      [(await gpu()).gpu_id],
    );
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null, reason: null });
    expect((await fixture.node(pool.node_id)).status).toBe('ready');
    expect((await fixture.subscription(team, held)).status).toBe('active');
  });

  it('is caught up with while the platform doubts where it is, and is found where it says', async () => {
    await fixture.subscribe(team, { pool_id: pool.pool_id });
    await ahead(300);
    const doubting = `UPDATE gpu SET state = 'doubting_temporal', deadline_at = clock_timestamp() + interval '15 seconds' WHERE gpu_id = $1`;
    await fixture.query(doubting, [(await gpu()).gpu_id]);
    await fixture.settle();
    expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null, slices: [{}, {}] });
  });
});

it('each layout is asked for by a greater even number than all before: what a device hears late is older', async () => {
  const generation = async () => {
    const [row] = await fixture.query<{ generation: number }>(
      'SELECT generation::int AS generation FROM gpu WHERE gpu_id = $1',
      [(await gpu()).gpu_id],
    );
    return row?.generation ?? 0;
  };
  const numbers = [await generation()];
  const third = await fixture.subscribe(team, { pool_id: pool.pool_id });
  numbers.push(await generation());
  await fixture.settle();
  await fixture.unsubscribe(team, third);
  await fixture.settle();
  numbers.push(await generation());
  expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: null });
  const [first = 0] = numbers;
  expect(numbers).toEqual([first, first + 2, first + 4]);
  expect(first % 2).toBe(0);
});
