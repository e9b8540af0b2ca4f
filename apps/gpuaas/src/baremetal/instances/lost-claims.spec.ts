import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { newId } from '@atoll/database';
import { expectErrors } from '@atoll/testing';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { Fences } from '../hosts/fences.js';
import { SimulatedHosts } from '../hosts/simulated-hosts.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

it('a process that has lost its claim on a node raises no fence, which the next one would have to go beyond', async () => {
  const team = await fixture.team();
  const { node_id } = await fixture.available();
  const instance = await fixture.settled(team);
  const query = fixture.gpuaas.query.bind(fixture.gpuaas);
  const fence = async () =>
    (await query<{ fence: string }>('SELECT fence FROM baremetal_node WHERE node_id = $1', [node_id]))[0]?.fence;
  let before: string | undefined;
  await query('UPDATE simulated_host SET fence = 100 WHERE node_id = $1', [node_id]);

  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const seen = jest.spyOn(hosts, 'seen').mockImplementation(async () => {
    await query('UPDATE baremetal_node SET claim_token = gen_random_uuid() WHERE node_id = $1', [node_id]);
    before = await fence();
    return '100';
  });
  expectErrors(/The claim on the node \d+ is lost/);
  await fixture.end(team, instance);
  while (seen.mock.calls.length === 0) if (!(await fixture.workOnce())) await fixture.pass(5);
  expect(await fence()).toBe(before);
});

it('nor does one that has lost its claim on an instance: it does nothing to the host either', async () => {
  const team = await fixture.team();
  const specs = { gpu_model: `lost-${newId().slice(-8)}`, gpu_count: 8, cpu_cores: 64, memory_gb: 512 };
  const { node_id } = await fixture.available('', { specs });
  const instance = await fixture.request(team, { specs: { gpu_model: specs.gpu_model } });
  await fixture.reach(instance, 'verifying');
  const fences = fixture.gpuaas.get(Fences);
  const next = fences.next.bind(fences);
  const verify = jest.spyOn(fixture.gpuaas.get(SimulatedHosts), 'verify');
  const state = () =>
    fixture.gpuaas.query(
      `SELECT node.fence, held.fence AS held, held.state FROM baremetal_node node JOIN baremetal_instance held USING (node_id) WHERE node_id = $1`,
      [node_id],
    );
  const before = await state();
  const asked = jest.spyOn(fences, 'next').mockImplementationOnce(async (row) => {
    await fixture.gpuaas.query(
      'UPDATE baremetal_instance SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp() WHERE instance_id = $1',
      [instance.instance_id],
    );
    return next(row);
  });
  while (asked.mock.calls.length === 0) await fixture.workOnce();
  expect([await state(), verify.mock.calls.length]).toEqual([before, 0]);
  await fixture.settle();
  expect((await fixture.instance(team, instance)).status).toBe('Active');
});
