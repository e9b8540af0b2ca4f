import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { nodes } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { untilLockWaits } from '@atoll/testing';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

it('a reset waits for who takes a slice of the node in the same moment, and is refused for it', async () => {
  const team = await fixture.team();
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 });
  const subscription = await fixture.subscribe(team, { pool_id: pool.pool_id });
  await fixture.settle();
  await fixture.unsubscribe(team, subscription);
  await fixture.settle();

  const reset = await fixture.get(Transactions).run(async (manager) => {
    const [gpuId] = pool.gpu_ids;
    await manager.query('SELECT FROM gpu WHERE gpu_id = $1 FOR NO KEY UPDATE', [gpuId]);
    await manager.query(
      `INSERT INTO lease (gpu_id, subscription_id, profile, slot_start, slot_size) VALUES ($1, $2, $3, 0, 1)`,
      [gpuId, subscription.subscription_id, subscription.profile],
    );
    const asked = errorOf(fixture.call(nodes.reset, { node_id: pool.node_id }));
    await untilLockWaits(fixture, { text: 'FROM gpu', unless: asked });
    return { asked };
  });
  expect(await reset.asked).toMatchObject({
    code: 'conflict',
    message: '1 slice of the node is held by subscriptions. Cordon the node, and reset it when they have ended.',
  });
  expect((await fixture.node(pool.node_id)).status).toBe('ready');
});
