import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SimulatedFaults, type SimulatedOperation } from '../driver/simulated-faults.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

async function pool() {
  const inventory = await fixture.inventory();
  const made = await fixture.poolOn(inventory, inventory.gpu_ids, { mechanism: 'mps', replicas: 4 });
  await fixture.settle();
  const { node_name } = await fixture.node(inventory.node_id);
  const refuse = (operation: SimulatedOperation) =>
    fixture.get(SimulatedFaults).inject(node_name, operation, 'refuse', 4);
  return { ...made, refuse };
}

it('what was subscribed to before the service was away is granted when it is back, and fails if its node does not confirm it then', async () => {
  const { pool_id, refuse } = await pool();
  const held = await fixture.subscribe(team, { pool_id });
  await fixture.pass(185);
  await fixture.work();
  expect(await fixture.subscription(team, held)).toMatchObject({ status: 'active', reason: null });
  await refuse('confirm');
  const other = await fixture.subscribe(await fixture.team(), { pool_id });
  await fixture.pass(185);
  await fixture.work();
  const states = async () =>
    fixture
      .query('SELECT state FROM subscription WHERE subscription_id = $1', [other.subscription_id])
      .then(([row]) => row);
  expect(await states()).toEqual({ state: 'subscribing' });
  await fixture.pass(91);
  await fixture.settle();
  expect(await states()).toEqual({ state: 'failed' });
});

it('a workload that was started before starts then, and fails if its node does not take it', async () => {
  const { pool_id, refuse } = await pool();
  const held = await fixture.subscribe(team, { pool_id, vgpus: 2 });
  await fixture.settle();
  const states = async (workload: { workload_id: string }) =>
    fixture.query('SELECT state FROM workload WHERE workload_id = $1', [workload.workload_id]).then(([row]) => row);
  const workload = await fixture.start(team, held);
  await fixture.pass(155);
  await fixture.work();
  expect(await states(workload)).toEqual({ state: 'running' });
  await refuse('occupy');
  const other = await fixture.start(team, held);
  await fixture.pass(155);
  await fixture.work();
  expect(await states(other)).toEqual({ state: 'pending' });
  await fixture.pass(76);
  await fixture.settle();
  expect(await states(other)).toEqual({ state: 'failed' });
});
