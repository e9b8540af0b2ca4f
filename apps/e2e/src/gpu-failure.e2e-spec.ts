import { describe, expect, it } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import { adminKey, call, succeed, until } from './client.js';
import { createNode, createPool, createTenant, type NodeView } from './gpu-inventory.js';
import { MortalPlatform } from './mortal-platform.js';

const startTimeoutMs = 120_000 * timeoutFactor;
const crashTimeoutMs = 180_000 * timeoutFactor;
/** What died with a step in its hands lets go of it after 15 s. */
const recoveryMs = 45_000;
const halves = { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 };

const firstGpu = async (node: { read: () => Promise<NodeView> }) => {
  const [gpu] = (await node.read()).gpus;
  if (!gpu) throw new Error('The node has no GPU.');
  return gpu;
};

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
    expect(failed.gpus).toMatchObject([{ mode: 'Spatial', transition: null, reason: 'The device could not be switched.' }]);
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
      reason: 'The device still holds memory of what has stopped.',
    });
    expect((await tenant.workload(wide.workload_id)).status).toBe('running');
  });
});

const mortal = new MortalPlatform();
const { operated } = mortal;

/** What goes wrong once is put where simulated nodes look for it. */
describe('a device that fails once', () => {
  async function start(name: string) {
    await mortal.start();
    const node = await createNode({ name, platform: operated });
    const { poolId } = await createPool(node, halves, operated);
    const tenant = await createTenant('Unlucky', ['member'], operated);
    const subscribe = async () => (await tenant.subscribe({ pool_id: poolId, vgpus: 1 })).body.subscription_id;
    const held = [await subscribe(), await subscribe()];
    for (const id of held) await tenant.subscribed(id);
    const inject = (operation: string, kind: string, times: number) =>
      mortal.query(`INSERT INTO gpuaas.simulated_fault (node_name, operation, kind, times) VALUES ($1, $2, $3, $4)`, [
        name,
        operation,
        kind,
        times,
      ]);
    return { node, tenant, subscribe, held, inject };
  }

  it(
    'on its way to Temporal stays Spatial: who asked is told why, nobody else notices, and the next one who asks gets it',
    async () => {
      const { node, tenant, subscribe, held, inject } = await start('gpu-01');
      await inject('switch', 'fail', 1);
      const unlucky = await subscribe();
      const failed = await tenant.subscribed(unlucky, 'failed');
      expect(failed).toMatchObject({ vgpus_allocated: 0, reason: expect.stringContaining('The device could not be switched.') });
      const gpu = await firstGpu(node);
      expect(gpu).toMatchObject({ mode: 'Spatial', origin: 'configured', transition: null, tenants: [] });
      expect(gpu.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual(held.toSorted());
      for (const id of held) expect((await tenant.subscription(id)).status).toBe('active');

      const next = await subscribe();
      await tenant.subscribed(next);
      expect(await firstGpu(node)).toMatchObject({ mode: 'Temporal', transition: null, reason: null });
    },
    startTimeoutMs,
  );

  it(
    'to be free on its way back returns to Spatial as soon as it is',
    async () => {
      const { node, tenant, subscribe, held, inject } = await start('gpu-02');
      const third = await subscribe();
      await tenant.subscribed(third);
      await inject('observe', 'busy', 3);
      await tenant.unsubscribe(held[0] ?? '');
      const gpu = () => firstGpu(node);
      expect(await until(gpu, ({ reason }) => reason !== null)).toMatchObject({ transition: 'to_spatial' });
      const back = await until(gpu, ({ mode }) => mode === 'Spatial');
      expect(back).toMatchObject({ origin: 'configured', transition: null, reason: null, tenants: [] });
      expect(back.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([held[1], third].toSorted());
    },
    startTimeoutMs,
  );
});

describe('a crash', () => {
  /** What its node does slowly is in its name: so that there is a middle. */
  async function start(name: string) {
    await mortal.start();
    const node = await createNode({ name, platform: operated });
    const { poolId } = await createPool(node, halves, operated);
    const tenant = await createTenant('Survivors', ['member', 'billing_viewer'], operated);
    /** What the bill says that a subscription had, in vGPU seconds. */
    const secondsOf = async (id: string) => {
      const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
      const path = `/team-billing/gpuaas-pool/${tenant.teamId}/${day(-1)}T00:00:00/${day(2)}T00:00:00/daily/all/utc`;
      const access = { url: operated.url, key: tenant.keys.billing_viewer ?? '' };
      const { pools } = await succeed<{ pools: { subscriptions: { subscription_id: string; vgpu_hours: number }[] }[] }>(
        'GET',
        path,
        access,
      );
      const found = pools.flatMap(({ subscriptions }) => subscriptions).find(({ subscription_id }) => subscription_id === id);
      return 3_600 * (found?.vgpu_hours ?? 0);
    };
    return { node, poolId, tenant, secondsOf, kill: () => mortal.kill('gpuaas') };
  }

  it(
    'in the middle of subscribing and of unsubscribing leaves nothing half done, no slot lost, and usage that is told once',
    async () => {
      const { node, poolId, tenant, secondsOf, kill } = await start('gpu-01.confirm-slow.vacate-slow');
      const offered = async () => (await tenant.offers(node.gpuaasId))[0]?.available_vgpus;
      const began = Date.now();
      const { body: taken } = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
      expect(taken.status).toBe('subscribing');
      await kill();
      await tenant.subscribed(taken.subscription_id, 'active', recoveryMs);
      const active = Date.now();
      expect(await offered()).toBe(0);
      const { body: workload } = await tenant.start(taken.subscription_id, { vgpus: 2 });
      await tenant.runs(workload.workload_id);

      const ended = Date.now();
      expect((await tenant.unsubscribe(taken.subscription_id, { force: true })).body.status).toBe('unsubscribing');
      await kill();
      await tenant.subscribed(taken.subscription_id, 'unsubscribed', recoveryMs);
      const gone = Date.now();
      expect((await tenant.workload(workload.workload_id)).status).toBe('stopped');
      expect(await offered()).toBe(2);
      expect((await firstGpu(node)).slices).toEqual([]);

      const atLeast = (2 * (ended - active)) / 1_000;
      const atMost = (2 * (gone - began)) / 1_000;
      // Once billing knows of the end, nothing is added any more.
      const [seconds] = await until(
        async () => [await secondsOf(taken.subscription_id), await secondsOf(taken.subscription_id)] as const,
        ([found, again]) => found === again && found > 0,
      );
      expect(seconds).toBeGreaterThanOrEqual(atLeast);
      expect(seconds).toBeLessThanOrEqual(atMost);
    },
    crashTimeoutMs,
  );

  it(
    'in the middle of a switch, there and back, ends where the switch was to end',
    async () => {
      const { node, poolId, tenant, kill } = await start('gpu-01.switch-slow');
      const gpu = () => firstGpu(node);
      const subscribe = async () => (await tenant.subscribe({ pool_id: poolId, vgpus: 1 })).body.subscription_id;
      const one = await subscribe();
      const two = await subscribe();
      for (const id of [one, two]) await tenant.subscribed(id);

      const three = await subscribe();
      expect(await gpu()).toMatchObject({ mode: 'Spatial', transition: 'to_temporal' });
      await kill();
      expect(await tenant.subscribed(three, 'active', recoveryMs)).toMatchObject({ vgpus_allocated: 1 });
      const lent = await until(gpu, ({ mode }) => mode === 'Temporal');
      expect(lent).toMatchObject({ origin: 'dynamic_fallback', transition: null, slices: [] });
      expect(lent.tenants.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([one, two, three].toSorted());

      await tenant.unsubscribe(two);
      await until(gpu, ({ transition }) => transition === 'to_spatial');
      await kill();
      const back = await until(gpu, ({ mode }) => mode === 'Spatial', recoveryMs);
      expect(back).toMatchObject({ origin: 'configured', transition: null, tenants: [] });
      expect(back.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([one, three].toSorted());

      for (const id of [one, three]) await tenant.unsubscribe(id);
      for (const id of [one, three]) await tenant.subscribed(id, 'unsubscribed');
      expect(await tenant.offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 2 }]);
      const next = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
      expect(next.status).toBe(202);
      await tenant.subscribed(next.body.subscription_id);
    },
    crashTimeoutMs,
  );
});
