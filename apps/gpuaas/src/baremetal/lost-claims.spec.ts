import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { expectErrors } from '@atoll/testing';
import { BaremetalFixture } from './baremetal-fixture.js';
import { SimulatedHosts } from './simulated-hosts.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
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
