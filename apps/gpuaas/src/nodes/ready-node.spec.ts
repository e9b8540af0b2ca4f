import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { nodes, type CreatePool } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** Without what differs between any two nodes: of what is so of their GPUs, only whether it is there. */
async function rowsOf(nodeId: string): Promise<object[]> {
  return fixture.query(
    `SELECT to_jsonb(node) - ARRAY['node_id', 'gpuaas_id', 'node_name', 'lane', 'created_at', 'entered_at', 'request_id', 'revision'] AS row FROM node WHERE node_id = $1
     UNION ALL SELECT to_jsonb(gpu) - ARRAY['gpu_id', 'node_id', 'uuid', 'lane', 'entered_at', 'request_id']
       || jsonb_build_object('pool_id', pool_id IS NOT NULL) FROM gpu WHERE node_id = $1
     UNION ALL SELECT to_jsonb(simulated_device) - 'uuid' || jsonb_build_object('ready_at', ready_at <= clock_timestamp())
       FROM simulated_device JOIN gpu USING (uuid) WHERE node_id = $1`,
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

it.each<Partial<CreatePool>>([
  {},
  { mechanism: 'mps', replicas: 4 },
  { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 },
])('the pool that specs begin with is what creation and preparation make (%j)', async (terms) => {
  const made = await fixture.pool(terms, { count: 2 });
  const inventory = await fixture.inventory('A100-80GB', 2);
  await fixture.poolOn(inventory, inventory.gpu_ids, terms);
  await fixture.settle();
  expect(await rowsOf(made.node_id)).toEqual(await rowsOf(inventory.node_id));
});
