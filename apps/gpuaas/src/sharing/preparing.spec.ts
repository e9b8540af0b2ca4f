import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { nodes, pools } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { GpuSteps } from './gpu-steps.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

it('a GPU that is being prepared for long shows a reason', async () => {
  const inventory = await fixture.inventory('A100-80GB', 1, `node-${newId()}`);
  const { node_name } = await fixture.node(inventory.node_id);
  await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
  const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
  await fixture.work();
  expect(await fixture.gpu(pool)).toMatchObject({ transition: 'preparing', reason: null });
  await fixture.query(
    `UPDATE gpu SET entered_at = entered_at - interval '20 s', deadline_at = deadline_at - interval '20 s' WHERE node_id = $1`,
    [inventory.node_id],
  );
  const { transition, reason } = await fixture.gpu(pool);
  expect([transition, reason]).toEqual([
    'preparing',
    expect.stringMatching(/^Its node has not reported the change as done since .*Z; the change times out at /),
  ]);
});

it.each([
  ['leases', { mechanism: 'mps', replicas: 2 }, 'Spatial'],
  ['entitlements', { mechanism: 'mps', replicas: 2, overcommit: 2 }, 'Spatial'],
  ['turns', { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 2 }, 'Temporal'],
] as const)(
  'a GPU that is being prepared for %s says so and is not offered; who subscribes waits for it',
  async (_, terms, mode) => {
    const inventory = await fixture.inventory();
    const { node_name } = await fixture.node(inventory.node_id);
    await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
    const pool = await fixture.poolOn(inventory, inventory.gpu_ids, terms);
    const offered = async () => {
      const { data } = await fixture.call(pools.available, { team_id: team.team_id, gpuaas_id: pool.gpuaas_id });
      return data[0]?.profiles[0]?.available_vgpus;
    };
    expect(await fixture.gpu(pool)).toMatchObject({ mode, origin: 'configured', transition: 'preparing' });
    expect(await offered()).toBe(0);
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
    const waiting = { status: 'subscribing', reason: 'Waiting for a GPU to change its sharing mode.' };
    expect(held).toMatchObject(waiting);
    await fixture.during(20);
    expect(await fixture.subscription(team, held)).toMatchObject(waiting);
    await fixture.get(SimulatedFaults).mend(node_name);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode, transition: null });
    expect((await fixture.subscription(team, held)).status).toBe('active');
    expect(await offered()).toBe((('overcommit' in terms && terms.overcommit) || 1) * 2 - 1);
  },
);

it('a GPU, or a node, whose turn has not come has no deadline; such a GPU says so, and counts as long from its turn on', async () => {
  const inventory = await fixture.inventory();
  const { node_id } = inventory;
  await fixture.call(nodes.reset, { node_id });
  expect(await fixture.query('SELECT state, deadline_at FROM node WHERE node_id = $1', [node_id])).toEqual([
    { state: 'initialising', deadline_at: null },
  ]);
  await fixture.work();
  const { node_name } = await fixture.node(node_id);
  await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
  const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
  await fixture.query(`UPDATE gpu SET entered_at = entered_at - interval '1 hour' WHERE node_id = $1`, [node_id]);
  expect(await fixture.gpu(pool)).toMatchObject({
    transition: 'preparing',
    reason: 'Many GPUs are being prepared; its turn has not come yet.',
  });
  expect(await fixture.query('SELECT deadline_at FROM gpu WHERE node_id = $1', [node_id])).toEqual([
    { deadline_at: null },
  ]);
  await fixture.work();
  expect(await fixture.gpu(pool)).toMatchObject({ transition: 'preparing', reason: null });
});

describe('where so many are prepared at once that turns come after the deadline', () => {
  const lostOf = ({ gpu_ids }: Inventory) =>
    fixture.query(
      `SELECT reason FROM machine_history WHERE machine = 'gpu' AND instance = $1 AND event = 'LOST'`,
      gpu_ids,
    );
  /** Begun a minute ago, by a process that has ended since. */
  const late = (table: 'gpu' | 'node', nodeId: string) =>
    fixture.query(
      `UPDATE ${table} SET deadline_at = clock_timestamp() - interval '1 s', due_at = clock_timestamp(), parked_until = NULL
       WHERE node_id = $1 AND state IN ('preparing', 'initialising')`,
      [nodeId],
    );

  it.each(['before it was asked', 'after it was asked'])(
    'a GPU whose turn comes late, %s, is prepared all the same',
    async (when) => {
      const inventory = await fixture.inventory();
      const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
      if (when === 'after it was asked') await fixture.work();
      await late('gpu', inventory.node_id);
      await fixture.settle();
      expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null });
      expect([await lostOf(inventory), (await fixture.node(inventory.node_id)).status]).toEqual([[], 'ready']);
    },
  );

  it('a GPU in doubt that nobody came to in time is where its device says', async () => {
    const inventory = await fixture.inventory();
    const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
    await fixture.settle();
    const doubting = `UPDATE gpu SET state = 'doubting_temporal', due_at = clock_timestamp() - interval '16 s',
      deadline_at = clock_timestamp() - interval '1 s' WHERE node_id = $1`;
    await fixture.query(doubting, [inventory.node_id]);
    await fixture.settle();
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null });
    expect([await lostOf(inventory), (await fixture.node(inventory.node_id)).status]).toEqual([[], 'ready']);
  });

  it('a node whose turn comes late is initialised all the same', async () => {
    const { node_id } = await fixture.inventory();
    await fixture.call(nodes.reset, { node_id });
    await late('node', node_id);
    await fixture.work();
    expect((await fixture.node(node_id)).status).toBe('ready');
  });

  it('a GPU whose device never ends its switch is given up', async () => {
    const inventory = await fixture.inventory();
    const { node_name } = await fixture.node(inventory.node_id);
    await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
    await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
    await fixture.work();
    await late('gpu', inventory.node_id);
    while ((await lostOf(inventory)).length === 0) await fixture.work();
    expect(await lostOf(inventory)).toEqual([{ reason: 'Deadline exceeded.' }]);
  });
});

it('the longer a device takes, the less often it is looked at', async () => {
  const inventory = await fixture.inventory();
  const { node_name } = await fixture.node(inventory.node_id);
  await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
  await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
  await fixture.work();
  const steps = fixture.get(GpuSteps);
  const [raw = {}] = await fixture.query<object>('SELECT * FROM gpu WHERE node_id = $1', [inventory.node_id]);
  const afterLookWith = async (leftMs: number) => {
    const deadlineAt = new Date(Date.now() + leftMs);
    const found = await steps.step(Object.assign(steps.rowOf(raw), { deadlineAt }), {
      signal: AbortSignal.timeout(60_000),
    });
    return found as { againAfterMs: number };
  };
  expect(await afterLookWith(120_000)).toEqual({ againAfterMs: 50 });
  expect((await afterLookWith(40_000)).againAfterMs).toBeGreaterThanOrEqual(2_000);
  expect(await afterLookWith(1_000)).toEqual({ againAfterMs: 5_000 });
});

it('a GPU on which nobody is comes into service by statements that read its leases, and write none', async () => {
  const inventory = await fixture.inventory();
  const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
  const sent = await allStatementsDuring(() => fixture.settle());
  expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Spatial', transition: null });
  expect(sent.filter(({ text }) => /UPDATE lease|UPDATE gpu SET slots_used/.test(text))).toEqual([]);
});

/** A thousand GPUs under way, of a node, none of which comes through. */
async function fillHall({ node_id }: Inventory): Promise<void> {
  await fixture.query(
    `INSERT INTO gpu (node_id, uuid, board, state, lane, deadline_at, claimed_until, entered_at)
     SELECT $1, 'hall-' || n, 'A100-80GB', 'preparing', 'hall' || n / 16, later, later, clock_timestamp()
     FROM generate_series(1, 1000) n, LATERAL (SELECT clock_timestamp() + interval '1 day' AS later) later`,
    [node_id],
  );
}
const clearHall = () => fixture.query(`DELETE FROM gpu WHERE uuid LIKE 'hall-%'`);

it('a GPU that a team waits for is prepared at once, however many others are under way', async () => {
  const inventory = await fixture.inventory();
  const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2 });
  await fixture.settle();
  await fillHall(await fixture.inventory());
  await fixture.call(nodes.reset, { node_id: inventory.node_id });
  await fixture.work();
  expect(await fixture.gpu(pool)).toMatchObject({ transition: 'preparing' });
  const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
  await fixture.during(20);
  expect((await fixture.subscription(team, held)).status).toBe('active');
  await clearHall();
});

it.each([
  ['a subscription', 1],
  ['a workload', 2],
])(
  'so are GPUs on which %s has no leases yet, since they are to fall back, and no others of their pool',
  async (what, overcommit) => {
    const inventory = await fixture.inventory('A100-80GB', 4);
    const terms = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4, overcommit } as const;
    const pool = await fixture.poolOn(inventory, inventory.gpu_ids.slice(0, 1), terms);
    const other = await fixture.poolOn(inventory, inventory.gpu_ids.slice(1), terms);
    await fillHall(inventory);
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
    if (what === 'a workload') {
      await fixture.until(async () => (await fixture.subscription(team, held)).status === 'active', 20);
      await fixture.query(
        `UPDATE gpu SET state = 'preparing', due_at = NULL, parked_until = NULL, deadline_at = NULL WHERE pool_id = $1`,
        [pool.pool_id],
      );
      await fixture.start(team, held, 3);
    }
    await fixture.during(20);
    expect(await fixture.gpu(pool)).toMatchObject({ mode: 'Temporal', transition: null });
    expect((await fixture.subscription(team, held)).status).toBe('active');
    expect(
      await fixture.query(`SELECT 1 FROM gpu WHERE pool_id = $1 AND state = 'preparing' AND deadline_at IS NULL`, [
        other.pool_id,
      ]),
    ).toHaveLength(3);
    await clearHall();
  },
);

it('so are as many GPUs as a subscription with overcommit waits for, and no others of its pool', async () => {
  const inventory = await fixture.inventory('A100-80GB', 4);
  const pool = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 2, overcommit: 2 });
  await fillHall(inventory);
  const held = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 5 });
  await fixture.during(20);
  expect((await fixture.subscription(team, held)).status).toBe('active');
  expect(
    await fixture.query('SELECT state, count(*)::int FROM gpu WHERE pool_id = $1 GROUP BY 1 ORDER BY 1', [
      pool.pool_id,
    ]),
  ).toEqual([
    { state: 'preparing', count: 2 },
    { state: 'spatial', count: 2 },
  ]);
  await clearHall();
});

it('a node with tenants is initialised again at once, however many others are under way', async () => {
  const thatLostAGpu = async (subscribers: number) => {
    const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { count: 2 });
    if (subscribers > 0) await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.settle();
    await fixture.query(`UPDATE gpu SET state = 'offline' WHERE node_id = $1 AND slots_used = 0`, [pool.node_id]);
    return pool;
  };
  const [held, empty] = [await thatLostAGpu(1), await thatLostAGpu(0)];
  await fixture.work();
  const statusOf = async ({ node_id }: { node_id: string }) => (await fixture.node(node_id)).status;
  expect([await statusOf(held), await statusOf(empty)]).toEqual(['init_failed', 'init_failed']);
  await fixture.query(
    `INSERT INTO node (gpuaas_id, node_name, state, lane, deadline_at, claimed_until, entered_at)
     SELECT $1, 'hall-' || n, 'initialising', 'hall' || n, later, later, clock_timestamp()
     FROM generate_series(1, 250) n, LATERAL (SELECT clock_timestamp() + interval '1 day' AS later) later`,
    [held.gpuaas_id],
  );
  await fixture.pass(60);
  await fixture.work();
  expect([await statusOf(held), await statusOf(empty)]).toEqual(['ready', 'initialising']);
  await fixture.query(`DELETE FROM node WHERE node_name LIKE 'hall-%'`);
});

it('of 4,000 GPUs and 3,000 nodes that wait, a look for those that are begun next and those that teams have reads few', async () => {
  const { node_id, gpuaas_id } = await fixture.inventory();
  await fixture.query(
    `INSERT INTO gpu (node_id, uuid, board, state, lane, deadline_at, claimed_until, entered_at)
     SELECT $1, 'hall-' || n, 'A100-80GB', 'preparing', 'hall' || n / 16, later, later, clock_timestamp()
     FROM generate_series(1, 5000) n, LATERAL (SELECT CASE WHEN n <= 1000 THEN clock_timestamp() + interval '1 day' END AS later) later`,
    [node_id],
  );
  await fixture.query(
    `INSERT INTO node (gpuaas_id, node_name, state, lane, deadline_at, claimed_until, entered_at)
     SELECT $1, 'hall-' || n, 'initialising', 'hall' || n, later, later, clock_timestamp()
     FROM generate_series(1, 3250) n, LATERAL (SELECT CASE WHEN n <= 250 THEN clock_timestamp() + interval '1 day' END AS later) later`,
    [gpuaas_id],
  );
  const sent = await allStatementsDuring(() => fixture.work());
  const begins = sent.filter(({ text }) => /\burgent AS\b/.test(text));
  for (const table of ['gpu', 'node']) expect(begins.some(({ text }) => text.includes(`UPDATE ${table} `))).toBe(true);
  for (const hasStatistics of [false, true]) {
    if (hasStatistics) await fixture.query('ANALYZE gpu; ANALYZE node');
    for (const begin of begins) {
      const read = await mostRowsRead(fixture, begin);
      expect([hasStatistics, read]).toEqual([hasStatistics, Math.min(read, 2_000)]);
    }
  }
  await fixture.query(`DELETE FROM gpu WHERE uuid LIKE 'hall-%'; DELETE FROM node WHERE node_name LIKE 'hall-%'`);
});
