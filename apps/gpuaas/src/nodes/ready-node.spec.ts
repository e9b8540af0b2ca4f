import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { nodes } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** Without what differs between any two nodes. */
async function rowsOf(nodeId: string): Promise<object[]> {
  return fixture.query(
    `SELECT to_jsonb(node) - ARRAY['node_id', 'gpuaas_id', 'node_name', 'lane', 'created_at', 'entered_at', 'request_id', 'revision'] AS row FROM node WHERE node_id = $1
     UNION ALL SELECT to_jsonb(gpu) - ARRAY['gpu_id', 'node_id', 'uuid', 'lane', 'entered_at', 'request_id'] FROM gpu WHERE node_id = $1
     UNION ALL SELECT to_jsonb(simulated_device) - 'uuid' FROM simulated_device JOIN gpu USING (uuid) WHERE node_id = $1`,
    [nodeId],
  );
}

it('the node that specs begin with is what registration and initialisation make', async () => {
  const made = await fixture.inventory('A100-80GB', 2);
  const { node_id } = await fixture.call(nodes.register, {
    gpuaas_id: made.gpuaas_id,
    node_name: `node-${newId()}`,
    gpus: [{ board: 'A100-80GB', count: 2 }],
  });
  await fixture.call(nodes.initialise, { node_id });
  await fixture.settle();
  expect(await rowsOf(made.node_id)).toEqual(await rowsOf(node_id));
});
