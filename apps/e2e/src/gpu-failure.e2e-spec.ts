import { describe, expect, it } from '@jest/globals';
import { adminKey, call, fresh, query, succeed, until } from './client.js';
import { createNode, createPool, createTenant, firstGpu, halves, type NodeView } from './gpu-inventory.js';

/** What goes wrong on a simulated node stands in its name. */
describe('a node that fails', () => {
  it('to be initialised says why and when it is tried again, can be tried by hand, and offers nothing', async () => {
    const node = await createNode({ name: 'gpu-01.init-fail' });
    const failed = () => until(node.read, ({ status }) => status === 'init_failed');
    const first = await failed();
    expect(first).toMatchObject({ reason: 'The node failed: init.', retry_at: expect.stringMatching(/Z$/) });
    expect(Date.parse(first.retry_at ?? '')).toBeGreaterThan(Date.now());
    const again = await call<NodeView>('POST', `/gpuaas/node/${node.nodeId}/initialise`, { key: adminKey });
    expect([again.status, again.body.status]).toEqual([202, 'initialising']);
    expect(Date.parse((await failed()).retry_at ?? '')).toBeGreaterThan(Date.parse(first.retry_at ?? ''));

    const body = { gpuaas_id: node.gpuaasId, pool_name: 'a', gpu_ids: node.gpuIds, ...halves };
    const { pool_id } = await succeed<{ pool_id: string }>('POST', '/gpuaas/pool/create', { key: adminKey, body });
    const tenant = await createTenant('Waiting');
    expect(await tenant.offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 0 }]);
    const refused = await tenant.subscribe({ pool_id, vgpus: 1 });
    expect([refused.status, refused.body.code]).toEqual([422, 'insufficient_capacity']);
  });

  it('to bring a GPU to its mode is taken out of service, and tells of which GPU and why', async () => {
    const node = await createNode({ name: 'gpu-01.switch-fail' });
    await createPool(node, halves);
    const failed = await until(node.read, ({ status }) => status === 'init_failed');
    expect(failed.reason).toMatch(/^GPU-\S+: The device could not be switched\.$/);
    expect(failed.gpus).toMatchObject([
      { mode: 'Spatial', transition: null, reason: 'The device could not be switched.' },
    ]);
    expect(await (await createTenant('Waiting')).offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 0 }]);
  });

  it('to free the memory of what has stopped shows so, and stays Temporal on its way', async () => {
    const node = await createNode({ name: 'gpu-01.vacate-busy' });
    const { poolId } = await createPool(node, { ...halves, overcommit: 2 });
    const tenant = await createTenant('Busy');
    const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 4 })).body;
    await tenant.subscribed(subscription_id);
    const { body: wide } = await tenant.start(subscription_id, { vgpus: 2 });
    await tenant.runs(wide.workload_id);
    const { body: third } = await tenant.start(subscription_id);
    await tenant.runs(third.workload_id);
    await tenant.stop(third.workload_id);
    await tenant.runs(third.workload_id, 'stopped');
    const busy = await until(
      () => firstGpu(node),
      ({ reason }) => reason !== null,
    );
    expect(busy).toMatchObject({
      mode: 'Temporal',
      origin: 'dynamic_fallback',
      transition: 'to_spatial',
      reason: 'The device still holds memory of workloads that have stopped.',
    });
    expect((await tenant.workload(wide.workload_id)).status).toBe('running');
  });
});

/** What goes wrong once is put where simulated nodes look for it. */
describe('a device that fails once', () => {
  async function start() {
    const name = fresh('gpu');
    const node = await createNode({ name });
    const { poolId } = await createPool(node, halves);
    const tenant = await createTenant('Unlucky');
    const subscribe = async () => (await tenant.subscribe({ pool_id: poolId, vgpus: 1 })).body.subscription_id;
    const held = [await subscribe(), await subscribe()];
    for (const id of held) await tenant.subscribed(id);
    const inject = (operation: string, kind: string, times: number) =>
      query(`INSERT INTO gpuaas.simulated_fault (node_name, operation, kind, times) VALUES ($1, $2, $3, $4)`, [
        name,
        operation,
        kind,
        times,
      ]);
    const mend = () => query('UPDATE gpuaas.simulated_fault SET times = 0 WHERE node_name = $1', [name]);
    return { node, tenant, subscribe, held, inject, mend };
  }

  it('on its way to Temporal stays Spatial: who asked is told why, nobody else notices, and the next one who asks gets it', async () => {
    const { node, tenant, subscribe, held, inject } = await start();
    await inject('switch', 'fail', 1);
    const unlucky = await subscribe();
    const failed = await tenant.subscribed(unlucky, 'failed');
    expect(failed).toMatchObject({
      vgpus_allocated: 0,
      reason: expect.stringContaining('The device could not be switched.'),
    });
    const gpu = await firstGpu(node);
    expect(gpu).toMatchObject({ mode: 'Spatial', origin: 'configured', transition: null, tenants: [] });
    expect(gpu.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual(held.toSorted());
    for (const id of held) expect((await tenant.subscription(id)).status).toBe('active');

    const next = await subscribe();
    await tenant.subscribed(next);
    expect(await firstGpu(node)).toMatchObject({ mode: 'Temporal', transition: null, reason: null });
  });

  it('to be free on its way back returns to Spatial as soon as it is', async () => {
    const { node, tenant, subscribe, held, inject, mend } = await start();
    const third = await subscribe();
    await tenant.subscribed(third);
    await inject('observe', 'busy', 10_000);
    await tenant.unsubscribe(held[0] ?? '');
    const gpu = () => firstGpu(node);
    expect(await until(gpu, ({ reason }) => reason !== null)).toMatchObject({ transition: 'to_spatial' });
    await mend();
    const back = await until(gpu, ({ mode }) => mode === 'Spatial');
    expect(back).toMatchObject({ origin: 'configured', transition: null, reason: null, tenants: [] });
    expect(back.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([held[1], third].toSorted());
  });
});
