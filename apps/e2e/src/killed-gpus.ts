import { expect } from '@jest/globals';
import { succeed, until } from './client.js';
import { createNode, createPool, createTenant, firstGpu, halves } from './gpu-inventory.js';
import type { Dies, MortalPlatform } from './mortal-platform.js';
import { recoveryMs } from './subscriber.js';

/** What its node does slowly is in its name: so that there is a middle. */
async function start({ operated }: MortalPlatform, name: string) {
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
    const found = pools
      .flatMap(({ subscriptions }) => subscriptions)
      .find(({ subscription_id }) => subscription_id === id);
    return 3_600 * (found?.vgpu_hours ?? 0);
  };
  return { node, poolId, tenant, secondsOf };
}

/** Subscribing and unsubscribing leave nothing half done, no slot lost, and usage that is told once. */
export async function aSubscription(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const { node, poolId, tenant, secondsOf } = await start(mortal, 'gpu-01.confirm-slow.vacate-slow');
  const offered = async () => (await tenant.offers(node.gpuaasId))[0]?.available_vgpus;
  const [taken, began] = await dies('passes', async () => {
    const beganAt = Date.now();
    const { body } = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
    expect(body.status).toBe('subscribing');
    return [body, beganAt] as const;
  });
  await tenant.subscribed(taken.subscription_id, 'active', recoveryMs);
  const active = Date.now();
  expect(await offered()).toBe(0);
  const { body: workload } = await tenant.start(taken.subscription_id, { vgpus: 2 });
  await tenant.runs(workload.workload_id);

  const ended = await dies('passes', async () => {
    const endedAt = Date.now();
    expect((await tenant.unsubscribe(taken.subscription_id, { force: true })).body.status).toBe('unsubscribing');
    return endedAt;
  });
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
}

/** A switch, there and back, ends where it was to end. */
export async function aSwitch(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const { node, poolId, tenant } = await start(mortal, 'gpu-01.switch-slow');
  const gpu = () => firstGpu(node);
  const subscribe = async () => (await tenant.subscribe({ pool_id: poolId, vgpus: 1 })).body.subscription_id;
  const one = await subscribe();
  const two = await subscribe();
  for (const id of [one, two]) await tenant.subscribed(id);

  const three = await dies('passes', async () => {
    const id = await subscribe();
    const { mode, transition } = await gpu();
    // On a machine that is slow to ask it may be over.
    expect(transition ?? mode).toMatch(/^(?:to_temporal|Temporal)$/);
    return id;
  });
  expect(await tenant.subscribed(three, 'active', recoveryMs)).toMatchObject({ vgpus_allocated: 1 });
  const lent = await until(gpu, ({ mode }) => mode === 'Temporal');
  expect(lent).toMatchObject({ origin: 'dynamic_fallback', transition: null, slices: [] });
  expect(lent.tenants.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([one, two, three].toSorted());

  await dies('passes', async () => {
    await tenant.unsubscribe(two);
    await until(gpu, ({ mode, transition }) => transition === 'to_spatial' || mode === 'Spatial');
  });
  const back = await until(gpu, ({ mode }) => mode === 'Spatial', recoveryMs);
  expect(back).toMatchObject({ origin: 'configured', transition: null, tenants: [] });
  expect(back.slices.map(({ subscription_id }) => subscription_id).toSorted()).toEqual([one, three].toSorted());

  for (const id of [one, three]) await tenant.unsubscribe(id);
  for (const id of [one, three]) await tenant.subscribed(id, 'unsubscribed');
  expect(await tenant.offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 2 }]);
  const next = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
  expect(next.status).toBe(202);
  await tenant.subscribed(next.body.subscription_id);
}
