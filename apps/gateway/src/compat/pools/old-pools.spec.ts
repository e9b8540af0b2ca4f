import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { currencies } from '@atoll/contracts/billing';
import { connections, gpuaasBatches, pools, regions, subscriptions, type Pool } from '@atoll/contracts/gpuaas';
import { instances, podBatches, pods, podsAtOnce } from '@atoll/contracts/pods';
import { imagePolicies } from '@atoll/contracts/teams';
import { AppError, stillRunning } from '@atoll/errors';
import { teamId } from '../../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';
import { aPod, aPool, aService, aSubscription, created_at } from '../testing/pools-fixture.js';

const imageId = '01890000-0000-7000-8000-0000000000cc';
const otherTeam = '01890000-0000-7000-8000-0000000000dd';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  key = compat.gateway.services.key();
  const { services } = compat.gateway;
  services.answer(pools.availableRegions, ({ page = 1 }) => ({
    data: [{ region_id: '3', region_name: 'eu', city: 'Oslo', country: null, gpuaas_ids: ['7', '8'] }],
    pagination: { page, limit: 100, total: 1 },
  }));
  services.answer(pools.available, ({ pool_id, page = 1, limit = 10 }) => {
    const every = Array.from({ length: 101 }, (_, at) => aPool(at + 1));
    const all = every.filter((pool) => (pool_id ?? pool.pool_id) === pool.pool_id);
    return { data: all.slice((page - 1) * limit, page * limit), pagination: { page, limit, total: all.length } };
  });
  services.answer(currencies.read, () => ({ currency: 'EUR' }));
  services.answer(imagePolicies.teamImages, () => ({
    data: [{ id: imageId, name: 'py', reference: 'docker.io/library/python:3.13' }],
  }));
  services.answer(podBatches.ofSubscriptions, () => ({ data: [aPod('a-qwert'), aPod('b-qwert')] }));
  services.answer(gpuaasBatches.places, () => ({
    subscriptions: [],
    regions: [{ region_id: '3', region_name: 'eu', city: 'Oslo', country: null, created_at }],
  }));
  services.answer(podBatches.exposed, () => ({ data: [aService()] }));
  services.answer(subscriptions.list, listedSubscriptions);
  services.answer(subscriptions.subscribe, () => aSubscription(42, 'subscribing'));
  for (const operation of [gpuaasBatches.end, gpuaasBatches.undo])
    services.answer(operation, () => aSubscription(42, 'unsubscribing'));
  services.answer(pods.delete, ({ pod_name }) => aPod(pod_name));
});
afterAll(() => compat.close());

function listedSubscriptions({ page = 1, limit = 10 }: { page?: number; limit?: number }) {
  const all = Array.from({ length: 12 }, (_, at) => aSubscription(at + 1, at === 0 ? 'unsubscribing' : 'active'));
  return { data: all.slice((page - 1) * limit, page * limit), pagination: { page, limit, total: all.length } };
}

const read = async (url: string) => (await compat.call<Record<string, unknown>>('GET', url, { key })).body;
const send = (url: string, body: unknown, headers = {}) =>
  compat.call<Record<string, unknown>>('POST', url, { key, body, headers });
const asked = (operation: { subject: string }) => compat.gateway.services.callsOf(operation).at(-1);

describe('what can be had', () => {
  it('regions have a row for each GPU service', async () => {
    expect(await read(`/api/gpuaas/available-regions?team_id=${teamId}`)).toEqual([
      { id: 3, region_name: 'eu', city: 'Oslo', country: '', gpuaas_id: 7 },
      { id: 3, region_name: 'eu', city: 'Oslo', country: '', gpuaas_id: 8 },
    ]);
  });

  it('pools are listed whole, each by its smallest profile', async () => {
    const all = await read(`/api/gpuaas/available-pools?team_id=${teamId}&gpuaas_id=7`);
    expect(all).toHaveLength(101);
    const pool = {
      id: 1,
      pool_name: 'pool-1',
      gpu_model_type: 'A100-80GB',
      available_vgpus: 7,
      pricing_hourly: '1.333333333',
    };
    expect((all as unknown as object[]).slice(0, 2)).toEqual([
      pool,
      { ...pool, id: 2, pool_name: 'pool-2', pricing_hourly: null },
    ]);
  });

  it('all pools have their places', async () => {
    const { services } = compat.gateway;
    const region = { region_id: '3', region_name: 'eu', city: null, country: 'Norway', created_at };
    const pool = { pool_id: '1', pool_name: 'p', gpuaas_id: '7', region_id: '3' } as Pool;
    services.answer(regions.list, () => ({ data: [region], pagination: { page: 1, limit: 100, total: 1 } }));
    services.answer(pools.list, () => ({ data: [pool], pagination: { page: 1, limit: 100, total: 1 } }));
    expect(await read('/api/gpuaas/all-pools')).toEqual([
      {
        pool_id: 1,
        pool_name: 'p',
        gpuaas_id: 7,
        cluster_id: 7,
        region_id: 3,
        region_name: 'eu',
        city: '',
        country_code: 'NO',
      },
    ]);
  });

  it.each<[unknown, unknown, number]>([
    [1, 1, 3.999999999],
    ['1', '2.5', 9.999999998],
    [1, 1 / 3, 1.333333332],
    [1, 1e-9, 0.000000004],
  ])('costs what the price comes to: pool %p for %p hours', async (pool_id, duration_hours, shown) => {
    const { status, body } = await send('/api/gpuaas/calculate-pool-subscription', {
      pool_id,
      vgpus: '3',
      duration_hours,
      team_id: teamId,
    });
    expect([status, body]).toEqual([
      200,
      { total_cost: shown, hourly_cost: 3.999999999, currency: 'EUR', breakdown: { gpu_cost: shown, storage_cost: 0 } },
    ]);
  });

  it('has no cost without a price, and a pool that is not there is not found', async () => {
    const question = { vgpus: 1, duration_hours: 1, team_id: teamId };
    expect(await send('/api/gpuaas/calculate-pool-subscription', { ...question, pool_id: 2 })).toMatchObject({
      status: 422,
      body: { code: 422 },
    });
    expect((await send('/api/gpuaas/calculate-pool-subscription', { ...question, pool_id: 999 })).status).toBe(404);
    for (const wrong of [
      { pool_id: 0 },
      { pool_id: imageId },
      { vgpus: 0 },
      { vgpus: '1e3' },
      { duration_hours: -1 },
      { duration_hours: 'x' },
    ]) {
      expect(
        (await send('/api/gpuaas/calculate-pool-subscription', { pool_id: 1, ...question, ...wrong })).status,
      ).toBe(400);
    }
  });
});

describe('subscriptions', () => {
  it('are listed with their pods, and nothing is asked once a row', async () => {
    const before = compat.gateway.services.calls.length;
    const page = await read(`/api/gpuaas/pool-subscription?team_id=${teamId}&page=0&per_page=10&metric_window=last_5m`);
    expect(page).toMatchObject({ page: 0, per_page: 10, total_items: 12, total_pages: 2 });
    const [first, second] = page.items as Record<string, unknown>[];
    expect(first).toMatchObject({
      id: 1,
      status: 'un_subscribing',
      pods: [],
      per_pod_info: { image_name: null },
      storage_details: { shared_volumes: null },
    });
    expect(second).toEqual({
      id: 2,
      pool_id: 1,
      team_id: teamId,
      pool_name: 'pool-1',
      gpu_count: 2,
      status: 'subscribed',
      region: { region_name: 'eu', city: 'Oslo' },
      storage_details: { shared_volumes: [{ id: 5, mount_point: '/data' }] },
      pods: [
        {
          pod_name: 'a-qwert',
          pod_status: 'running',
          gpu_count: 1,
          services: [expect.objectContaining({ id: 5, service_type: 'https' })],
        },
        { pod_name: 'b-qwert', pod_status: 'running', gpu_count: 1, services: [] },
      ],
      per_pod_info: {
        vgpu_count: 1,
        image_name: 'docker.io/library/python:3.13',
        image_uuid: imageId,
        vcpu_count: 0,
        ram_mb: 0,
      },
      metrics: { tflops_usage: 0, vram_usage: 48.25 },
    });
    expect(compat.gateway.services.calls.length - before).toBeLessThan(8);
    expect(compat.gateway.services.callsOf(subscriptions.list).at(-1)?.input).toMatchObject({
      metric_window: 'last_1h',
    });
  });

  it('past the last page are the last that there are; only their pods and regions are asked for, and without any none', async () => {
    const { services } = compat.gateway;
    expect((await read(`/api/gpuaas/pool-subscription?team_id=${teamId}&page=9`)).items).toHaveLength(2);
    expect(asked(podBatches.ofSubscriptions)?.input).toEqual({ team_id: teamId, subscription_ids: ['11', '12'] });
    expect(asked(gpuaasBatches.places)?.input).toEqual({ region_ids: ['3'] });
    const before = services.callsOf(podBatches.ofSubscriptions).length;
    services.answer(subscriptions.list, ({ page = 1, limit = 10 }) => ({
      data: [],
      pagination: { page, limit, total: 0 },
    }));
    expect(await read(`/api/gpuaas/pool-subscription?team_id=${teamId}`)).toMatchObject({ items: [], total_pages: 1 });
    expect(services.callsOf(podBatches.ofSubscriptions)).toHaveLength(before);
    services.answer(subscriptions.list, listedSubscriptions);
  });

  it('are shown with all their pods, a thousand of which are asked for at once', async () => {
    const { services } = compat.gateway;
    const all = Array.from({ length: 2 * podsAtOnce }, (_, at) => ({
      ...aPod(`pod-${at}`),
      pod_id: `01890000-0000-7000-8000-${String(at).padStart(12, '0')}`,
    }));
    services.answer(podBatches.ofSubscriptions, ({ pod_id = '' }) => ({
      data: all.filter((pod) => pod.pod_id > pod_id).slice(0, podsAtOnce),
    }));
    const { items } = await read(`/api/gpuaas/pool-subscription?team_id=${teamId}`);
    expect((items as { pods: object[] }[]).map(({ pods: shown }) => shown.length)).toEqual([
      0,
      all.length,
      ...Array.from({ length: 8 }, () => 0),
    ]);
    services.answer(podBatches.ofSubscriptions, () => ({ data: [aPod('a-qwert'), aPod('b-qwert')] }));
  });

  it('are one a pool: the service that owns them is told so', async () => {
    const { status, body } = await send('/api/gpuaas/pool/subscribe', {
      team_id: teamId,
      pool_id: '1',
      vgpus: 2,
      name: 'ignored',
    });
    expect([status, body]).toEqual([200, { subscription_id: 42 }]);
    expect(asked(subscriptions.subscribe)?.input).toEqual({ team_id: teamId, pool_id: '1', vgpus: 2, unique: true });
    compat.gateway.services.answer(subscriptions.subscribe, () => {
      throw new AppError('conflict', 'Already subscribed to this pool.');
    });
    const second = await send('/api/gpuaas/pool/subscribe', { team_id: teamId, pool_id: 1, vgpus: 2 });
    expect(second).toMatchObject({ status: 409, body: { message: 'Already subscribed to this pool.' } });
    compat.gateway.services.answer(subscriptions.subscribe, () => aSubscription(42, 'subscribing'));
  });

  it('with an image have a pod a vGPU, each under a key of its own', async () => {
    const { services } = compat.gateway;
    services.answer(pods.create, ({ name }) => aPod(`${name}-qwert`));
    const before = services.callsOf(pods.create).length;
    const order = { team_id: teamId, pool_id: 1, vgpus: 5, image_uuid: imageId };
    expect((await send('/api/gpuaas/pool/subscribe', order, { 'idempotency-key': 'k' })).status).toBe(200);
    const made = services.callsOf(pods.create).slice(before);
    expect(made.map(({ input }) => input)).toEqual(
      Array.from({ length: 5 }, (_, at) => ({
        team_id: teamId,
        subscription_id: '42',
        name: `gpu-42-${at + 1}`,
        image: 'docker.io/library/python:3.13',
      })),
    );
    expect(new Set(made.map(({ context }) => context.idempotency?.key)).size).toBe(5);
    expect((await send('/api/gpuaas/pool/subscribe', { ...order, image_uuid: otherTeam })).status).toBe(404);
    expect((await send('/api/gpuaas/pool/subscribe', { ...order, vgpus: 65 })).status).toBe(400);
  });

  it('of which a pod is refused are undone with all of their pods, and the next call by the same key is a new one', async () => {
    const { services } = compat.gateway;
    services.answer(pods.create, ({ name }) => {
      if (name === 'gpu-42-2') throw new AppError('image_not_allowed', 'Not this image.');
      return aPod(`${name}-qwert`);
    });
    const order = { team_id: teamId, pool_id: 1, vgpus: 3, image_uuid: imageId };
    const subscribe = () => send('/api/gpuaas/pool/subscribe', order, { 'idempotency-key': 'k2' });
    const before = services.calls.length;
    expect(await subscribe()).toMatchObject({ status: 403, body: { message: 'Not this image.' } });
    const [undone] = services.callsOf(gpuaasBatches.undo);
    expect([undone?.input, undone?.context.idempotency?.key]).toEqual([{ subscription_id: '42' }, 'k2']);
    const deleted = services.callsOf(pods.delete).slice(-2);
    expect(deleted.map(({ input }) => input)).toEqual([{ pod_name: 'a-qwert' }, { pod_name: 'b-qwert' }]);
    services.answer(subscriptions.subscribe, () => aSubscription(43, 'subscribing'));
    expect(await subscribe()).toMatchObject({ status: 200, body: { subscription_id: 43 } });
    const keys = services.calls
      .slice(before)
      .flatMap(({ subject, context }) => (subject === pods.create.subject ? [context.idempotency?.key] : []));
    expect(new Set(keys).size).toBe(6);
    services.answer(subscriptions.subscribe, () => aSubscription(42, 'subscribing'));
  });

  it('of which a pod is not created before the deadline are undone with all of their pods', async () => {
    const { services } = compat.gateway;
    const realNow = Date.now;
    const clock = jest.spyOn(Date, 'now');
    services.answer(pods.create, ({ name }) => {
      if (name !== 'gpu-42-2') return aPod(`${name}-qwert`);
      clock.mockImplementation(() => realNow() + 3_600_000);
      throw new AppError('deadline_exceeded', 'The service did not respond in time.');
    });
    const before = services.calls.length;
    try {
      const order = { team_id: teamId, pool_id: 1, vgpus: 2, image_uuid: imageId };
      expect((await send('/api/gpuaas/pool/subscribe', order)).status).toBe(504);
    } finally {
      clock.mockRestore();
    }
    const undoing = [gpuaasBatches.undo, pods.delete].map(({ subject }) => subject);
    const calls = services.calls.slice(before).filter(({ subject }) => undoing.includes(subject));
    expect(calls.map(({ input }) => input)).toEqual([
      { subscription_id: '42' },
      { pod_name: 'a-qwert' },
      { pod_name: 'b-qwert' },
    ]);
  });

  it('are left to the call that makes them where another one comes with the same key', async () => {
    const { services } = compat.gateway;
    services.answer(pods.create, () => {
      throw stillRunning();
    });
    const before = services.callsOf(gpuaasBatches.undo).length;
    const order = { team_id: teamId, pool_id: 1, vgpus: 3, image_uuid: imageId };
    expect((await send('/api/gpuaas/pool/subscribe', order, { 'idempotency-key': 'k3' })).status).toBe(409);
    expect(services.callsOf(gpuaasBatches.undo)).toHaveLength(before);
  });

  it('end with what runs on them', async () => {
    const { status, body } = await send('/api/gpuaas/pool/unsubscribe', {
      subscription_id: '42',
      team_id: teamId,
      pool_id: 1,
      reason: 'x',
    });
    expect([status, body]).toEqual([200, {}]);
    expect(asked(gpuaasBatches.end)?.input).toEqual({ subscription_id: '42', team_id: teamId, pool_id: '1' });
    expect(asked(pods.delete)?.input).toEqual({ pod_name: 'b-qwert' });
    for (const wrong of [
      {},
      { subscription_id: teamId },
      { subscription_id: -1 },
      { subscription_id: 1.5 },
      { subscription_id: 1, team_id: 7 },
    ]) {
      expect((await send('/api/gpuaas/pool/unsubscribe', wrong)).status).toBe(400);
    }
  });
});

describe('connections', () => {
  it('have a command, and the services of their pods', async () => {
    const { services } = compat.gateway;
    const ssh = { host: 'gpu.example.com', port: 2222, username: 'a-qwert', command: 'ssh …' };
    services.answer(podBatches.connections, () => ({
      data: [
        { subscription_id: '2', pod_name: 'a-qwert', status: 'running', ssh, services: [] },
        { subscription_id: '3', pod_name: 'c-qwert', status: 'running', ssh, services: [] },
        { subscription_id: '2', pod_name: 'b-qwert', status: 'stopped', ssh: null, services: [] },
      ],
    }));
    const before = services.callsOf(podBatches.ofSubscriptions).length;
    // Nobody has refreshed it.
    services.answer(connections.read, () => ({
      data: [
        {
          subscription_id: '2',
          pool_name: 'pool-1',
          gpuaas_id: '7',
          region_id: '3',
          pods: [],
          refreshed_at: null,
          stale: false,
        },
      ],
    }));
    expect(await read(`/api/gpuaas/connection-info?team_id=${teamId}&subscription_id=2`)).toMatchObject([
      {
        id: 2,
        region_id: 3,
        pods: [
          {
            ssh_info: { cmd: 'ssh -p 2222 a-qwert@gpu.example.com', pass: '' },
            discovered_services: [{ id: 5, node_port: 30_100, ip: 'gpu.example.com' }],
          },
          { pod_name: 'b-qwert', discovered_services: [] },
        ],
      },
    ]);
    for (const operation of [podBatches.connections, podBatches.exposed])
      expect(asked(operation)?.input).toEqual({ team_id: teamId, subscription_id: '2' });
    expect(services.callsOf(podBatches.ofSubscriptions)).toHaveLength(before);
  });

  it('list what may attach', async () => {
    const { services } = compat.gateway;
    const host = { id: imageId, name: 'metal', kind: 'baremetal' as const, status: 'Active' };
    services.answer(connections.compatibleInstances, () => ({ data: [host] }));
    services.answer(instances.list, () => ({
      data: [{ ...host, team_id: teamId, workspace_id: teamId, region_id: '3', created_at }],
    }));
    expect(await read(`/api/gpuaas/compatible-instances/${teamId}`)).toEqual([
      { id: imageId, name: 'metal', status: 'Active', created_at, ip_address: null },
    ]);
  });
});
