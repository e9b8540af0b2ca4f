import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { nodes, regions, type Pool, type Subscription } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { NodeDriver } from '../driver/node-driver.js';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';

/** Real workers, with steps that never time out: whatever hangs is in flight for the whole of a spec. */
let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ isRunning: true, workers: { pollMs: 50, stepMs: 3_600_000 } });
  team = await fixture.team();
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

const eventually = async (holds: () => Promise<boolean> | boolean) => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
};
const statusOf = async (held: Subscription) => (await fixture.subscription(team, held)).status;
const isActive = async (held: Subscription) => (await statusOf(held)) === 'active';

/** Calls to a node that have begun, and those of them that have ended. */
function watch(operation: 'confirm' | 'vacate', nodeName: string): { begun: number; ended: number } {
  const calls = { begun: 0, ended: 0 };
  const driver = fixture.get(NodeDriver);
  const original = driver[operation].bind(driver) as NodeDriver['confirm'];
  jest.spyOn(driver, operation as 'confirm').mockImplementation((slices, signal) => {
    if (!slices.some((slice) => slice.nodeName === nodeName)) return original(slices, signal);
    calls.begun += 1;
    return original(slices, signal).finally(() => (calls.ended += 1));
  });
  return calls;
}

async function gpuService(): Promise<string> {
  const { region_id } = await fixture.call(regions.create, { region_name: `region-${newId()}` });
  return (await fixture.call(regions.createGpuaas, { region_id, name: 'a' })).gpuaas_id;
}

async function node(gpuaas_id: string, node_name: string, count: number): Promise<Inventory> {
  const { node_id, gpus } = await fixture.call(nodes.register, {
    gpuaas_id,
    node_name,
    gpus: [{ board: 'L4-24GB', count }],
  });
  await fixture.call(nodes.initialise, { node_id });
  await eventually(async () => (await fixture.node(node_id)).status === 'ready');
  return { gpuaas_id, node_id, gpu_ids: gpus.map(({ gpu_id }) => gpu_id) };
}

async function pool(inventory: Inventory, gpu_ids: (string | undefined)[], replicas = 2): Promise<Pool> {
  const made = await fixture.poolOn(inventory, gpu_ids.map(String), { mechanism: 'mps', replicas });
  const resting = `SELECT FROM gpu WHERE gpu_id = ANY ($1) AND state = 'spatial'`;
  await eventually(async () => (await fixture.query(resting, [gpu_ids])).length === gpu_ids.length);
  return made;
}

it('a subscription is granted beside twelve of a node that hangs, while everything asked of that node is still in flight', async () => {
  const name = `node-${newId()}.confirm-hang`;
  const calls = watch('confirm', name);
  const sick = await node(await gpuService(), name, 4);
  const well = await node(await gpuService(), `node-${newId()}`, 1);
  const [hanging, healthy] = [await pool(sick, sick.gpu_ids, 16), await pool(well, well.gpu_ids)];
  for (let at = 0; at < 12; at += 1) await fixture.subscribe(team, { pool_id: hanging.pool_id });
  await eventually(() => calls.begun > 0);
  const held = await fixture.subscribe(team, { pool_id: healthy.pool_id });
  await eventually(() => isActive(held));
  expect(calls.begun).toBeLessThanOrEqual(4);
  expect(calls.ended).toBe(0);
});

it.each(['before', 'after'])(
  'subscriptions that span a node that hangs and one that does not, registered %s it, hold up nobody who needs that one alone',
  async (order) => {
    const name = `node-${newId()}.confirm-hang`;
    const calls = watch('confirm', name);
    const gpuaas = await gpuService();
    const early = await node(gpuaas, order === 'before' ? `node-${newId()}` : name, 7);
    const late = await node(gpuaas, order === 'before' ? name : `node-${newId()}`, 7);
    const [well, sick] = order === 'before' ? [early, late] : [late, early];
    for (let at = 0; at < 6; at += 1) {
      const both = await pool(well, [well.gpu_ids[at], sick.gpu_ids[at]]);
      await fixture.subscribe(team, { pool_id: both.pool_id, vgpus: 4 });
    }
    await eventually(() => calls.begun === 4);
    const alone = await pool(well, well.gpu_ids.slice(6));
    const held = await fixture.subscribe(team, { pool_id: alone.pool_id });
    await eventually(() => isActive(held));
    expect([calls.begun, calls.ended]).toEqual([4, 0]);
  },
);

it('a subscription that spans a node that fails gives back what it holds on the others, and only that node is distrusted', async () => {
  const gpuaas = await gpuService();
  const name = `node-${newId()}`;
  const [one, sick, two] = [
    await node(gpuaas, `node-${newId()}`, 1),
    await node(gpuaas, name, 1),
    await node(gpuaas, `node-${newId()}`, 1),
  ];
  const all = await pool(one, [...one.gpu_ids, ...sick.gpu_ids, ...two.gpu_ids]);
  const held = await fixture.subscribe(team, { pool_id: all.pool_id, vgpus: 6 });
  await eventually(() => isActive(held));
  const faults = fixture.get(SimulatedFaults);
  await faults.inject(name, 'vacate', 'refuse', 1);
  await fixture.unsubscribe(team, held);
  await eventually(async () => {
    const [row] = await fixture.query<{ lane: string; further: number }>(
      `SELECT lane, cardinality(further_lanes) AS further FROM subscription WHERE subscription_id = $1 AND parked_until IS NULL`,
      [held.subscription_id],
    );
    return row?.further === 0;
  });
  await eventually(async () => (await statusOf(held)) === 'unsubscribed');
  const again = await fixture.subscribe(team, { pool_id: all.pool_id, vgpus: 6 });
  await eventually(() => isActive(again));
  await faults.inject(name, 'vacate', 'fail', 2);
  await fixture.unsubscribe(team, again);
  await eventually(async () => (await statusOf(again)) === 'failed');
  const offline = await fixture.query<{ node_id: string }>(
    `SELECT DISTINCT node_id FROM machine_history JOIN gpu ON instance = gpu_id::text WHERE machine = 'gpu' AND event = 'GO_OFFLINE'
       AND node_id = ANY ($1)`,
    [[one.node_id, sick.node_id, two.node_id]],
  );
  expect(offline).toEqual([{ node_id: sick.node_id }]);
});
