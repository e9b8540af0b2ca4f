import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { nodes, subscriptions, type GpuNode, type MeteredSubscription, type Pool } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const terms = { mechanism: 'mps', replicas: 2, overcommit: 2 } as const;
const inTransition = 'Waiting for a GPU to change its sharing mode.';

interface HalfPrepared {
  readonly pool: Pool & Inventory;
  readonly late: GpuNode;
}

/**
 * A pool of GPUs that are sold as four slices each: one is in service, and the switch of the others, on another node,
 * does not end.
 */
async function halfPrepared(count = 1): Promise<HalfPrepared> {
  const inventory = await fixture.inventory();
  const late = await fixture.call(nodes.register, {
    gpuaas_id: inventory.gpuaas_id,
    node_name: `node-${newId()}`,
    gpus: [{ board: 'A100-80GB', count }],
  });
  await fixture.call(nodes.initialise, { node_id: late.node_id });
  await fixture.work();
  await fixture.get(SimulatedFaults).inject(late.node_name, 'switch', 'hang', 100);
  const gpuIds = [...inventory.gpu_ids, ...late.gpus.map(({ gpu_id }) => gpu_id)];
  const pool = await fixture.poolOn(inventory, gpuIds, terms);
  await fixture.until(async () => (await fixture.gpu(pool)).transition === null, 30);
  expect((await fixture.gpu(late)).transition).toBe('preparing');
  return { pool, late };
}

const subscribe = ({ pool: { pool_id } }: HalfPrepared, vgpus: number) => fixture.subscribe(team, { pool_id, vgpus });

/** Status and reason of each, in their order. */
async function shown(...all: { subscription_id: string }[]): Promise<Pick<MeteredSubscription, 'status' | 'reason'>[]> {
  const found = await Promise.all(all.map((held) => fixture.subscription(team, held)));
  return found.map(({ status, reason }) => ({ status, reason }));
}

/** What their steps find that run at once, in their order. */
async function stepsOf(all: readonly { subscription_id: string }[]): Promise<unknown[]> {
  const steps = fixture.get(SubscriptionSteps);
  const rows = await fixture.query<object>(
    'SELECT * FROM subscription WHERE subscription_id = ANY ($1) ORDER BY subscription_id',
    [all.map(({ subscription_id }) => subscription_id)],
  );
  const context = { signal: AbortSignal.timeout(60_000) };
  return Promise.all(rows.map((row) => steps.step(steps.rowOf(row), context)));
}

const active = { status: 'active', reason: null };
const waiting = { status: 'subscribing', reason: inTransition };

it('what GPUs in service carry is granted at once, and what rests on one that is being prepared waits, in the order of arrival', async () => {
  const half = await halfPrepared();
  const [first, second, third] = [await subscribe(half, 3), await subscribe(half, 3), await subscribe(half, 1)];
  expect([first, second, third].map(({ reason }) => reason)).toEqual([null, inTransition, inTransition]);
  await fixture.during(5);
  expect(await shown(first, second, third)).toEqual([active, waiting, waiting]);
  expect((await errorOf(subscribe(half, 2))).message).toMatch(/Available: 1 of mps-2\.$/);
  await fixture.get(SimulatedFaults).mend(half.late.node_name);
  await fixture.settle();
  expect(await shown(first, second, third)).toEqual([active, active, active]);
});

it('the more wait before one, the more rarely it looks again', async () => {
  const half = await halfPrepared(8);
  await subscribe(half, 4);
  const all: { subscription_id: string }[] = [];
  while (all.length < 20) all.push(await subscribe(half, 1));
  await fixture.during(5);
  const found = (await stepsOf(all)) as { againAfterMs: number }[];
  expect(found.map(({ againAfterMs }) => againAfterMs)).toEqual([...Array(16).fill(1_000), ...Array(4).fill(2_000)]);
});

it('those behind one that is withdrawn are granted what it waited for', async () => {
  const half = await halfPrepared();
  const [large, small] = [await subscribe(half, 5), await subscribe(half, 3)];
  await fixture.during(5);
  expect(await shown(large, small)).toEqual([waiting, waiting]);
  await fixture.unsubscribe(team, large);
  await fixture.during(5);
  expect(await shown(small)).toEqual([active]);
});

it('of two whose steps run at once, only that is granted which GPUs in service carry', async () => {
  const half = await halfPrepared();
  const all = [await subscribe(half, 3), await subscribe(half, 3)];
  expect(await stepsOf(all)).toEqual([{ event: 'GRANTED' }, { againAfterMs: 1_000, reason: expect.anything() }]);
});

it('a subscription that grows onto a GPU that is being prepared keeps its size until that is in service', async () => {
  const half = await halfPrepared();
  const held = await subscribe(half, 4);
  await fixture.work();
  const { subscription_id } = held;
  await fixture.call(subscriptions.resize, { subscription_id, vgpus: 6 }, team.member);
  await fixture.during(5);
  expect(await fixture.subscription(team, held)).toMatchObject({
    status: 'active',
    vgpus_allocated: 4,
    resize: { vgpus: 6, status: 'pending', reason: inTransition },
  });
  await fixture.get(SimulatedFaults).mend(half.late.node_name);
  await fixture.settle();
  expect(await fixture.subscription(team, held)).toMatchObject({ vgpus_allocated: 6, resize: null });
});

it('one whose GPU does not come into service by itself any more fails with what is available, and those behind it do not', async () => {
  const half = await halfPrepared();
  const [large, small] = [await subscribe(half, 5), await subscribe(half, 3)];
  await fixture.work();
  await fixture.call(nodes.cordon, { node_id: half.late.node_id });
  await fixture.during(5);
  const { pool_name } = half.pool;
  const reason = `Pool ${pool_name} has no capacity for 5 vGPUs of mps-2. Available: 4 of mps-2.`;
  expect(await shown(large, small)).toEqual([{ status: 'failed', reason }, active]);
});

it('one whose GPU could not be prepared says so, and is granted once its node has been initialised again', async () => {
  const half = await halfPrepared();
  const held = await subscribe(half, 5);
  await fixture.until(async () => (await fixture.node(half.late.node_id)).status === 'init_failed', 90);
  await fixture.during(3);
  const reason = 'Waiting for a GPU that is out of service; its node is initialised again. The GPU timed out.';
  expect(await shown(held)).toEqual([{ status: 'subscribing', reason }]);
  await fixture.get(SimulatedFaults).mend(half.late.node_name);
  await fixture.settle();
  expect(await shown(held)).toEqual([active]);
});

it('only those that rest on a GPU that could not be prepared say so, and not those before them, which another will carry', async () => {
  const half = await halfPrepared(2);
  const all = [await subscribe(half, 5), await subscribe(half, 4)];
  await fixture.query(`UPDATE gpu SET state = 'offline', last_error = $2 WHERE gpu_id = $1`, [
    half.late.gpus[0]?.gpu_id,
    { code: 'switch_failed', message: 'The device could not be switched.' },
  ]);
  const message =
    'Waiting for a GPU that is out of service; its node is initialised again. The device could not be switched.';
  expect(await stepsOf(all)).toEqual([
    { againAfterMs: 1_000, reason: { code: 'in_transition', message: inTransition } },
    { againAfterMs: 1_000, reason: { code: 'gpu_offline', message } },
  ]);
});

it('a GPU that falls back is in service: who subscribes meanwhile is granted at once', async () => {
  const pool = await fixture.pool({ ...terms, allow_fallback: true, temporal_replicas: 4 });
  const tenant = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
  await fixture.work();
  const { node_name } = await fixture.node(pool.node_id);
  await fixture.get(SimulatedFaults).inject(node_name, 'switch', 'hang', 100);
  await fixture.start(team, tenant, 3);
  const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
  await fixture.work();
  expect((await fixture.gpu(pool)).transition).toBe('to_temporal');
  expect([held.reason, ...(await shown(tenant, held))]).toEqual([null, active, active]);
});
