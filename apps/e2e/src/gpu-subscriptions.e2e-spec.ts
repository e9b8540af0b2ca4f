import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, succeed, until, type TeamView } from './client.js';
import { createNode, createPool, createTenant, type SubscriptionView } from './gpu-inventory.js';

interface Listing {
  data: SubscriptionView[];
  pagination?: { page: number; limit: number; total: number };
}

let node: Awaited<ReturnType<typeof createNode>>;
let poolId: string;
let tenant: Awaited<ReturnType<typeof createTenant>>;
let held: SubscriptionView;
const read = <Body>(path: string, key = tenant.key) => succeed<Body>('GET', path, { key });
const list = (query = '') => read<Listing>(`/gpuaas/pool-subscription?team_id=${tenant.teamId}${query}`);

beforeAll(async () => {
  tenant = await createTenant('Subscribers', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  node = await createNode({ gpus: [{ board: 'A100-40GB', count: 2 }] });
  ({ poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.5gb', '3g.20gb'] }));
});

describe('a subscription', () => {
  it('is taken once for one Idempotency-Key, at the price that the pool shows', async () => {
    const body = {
      sku: 'gpu.A100-40GB.1g.5gb',
      unit: 'vgpu',
      unit_price: '3600',
      valid_from: '2026-01-01T00:00:00Z',
      force: true,
    };
    await succeed('POST', '/price', { key: adminKey, body: { ...body, team_id: tenant.teamId } });
    const offers = await until(
      () => tenant.offers(node.gpuaasId),
      ([smallest]) => smallest?.unit_price === '3600',
    );
    expect(offers).toMatchObject([
      { profile: '1g.5gb', v_ram_gb: 5, available_vgpus: 14 },
      { profile: '3g.20gb', v_ram_gb: 20, available_vgpus: 4, unit_price: null },
    ]);
    const ask = () =>
      call<SubscriptionView>('POST', '/gpuaas/pool/subscribe', {
        key: tenant.key,
        headers: { 'idempotency-key': 'once' },
        body: { team_id: tenant.teamId, pool_id: poolId, vgpus: 2, name: 'training' },
      });
    const [first, second] = [await ask(), await ask()];
    expect([first.status, second.status, second.body]).toEqual([202, 202, first.body]);
    held = await tenant.subscribed(first.body.subscription_id);
    expect((await list()).data.length).toBe(1);
  });

  it('is listed with its metrics, for its team and for the operator', async () => {
    const own = await until(
      () =>
        read<Listing>(
          `/gpuaas/pool-subscription?team_id=${tenant.teamId}&gpuaas_id=${node.gpuaasId}&metric_window=last_1h`,
          tenant.keys.viewer,
        ),
      ({ data }) => data[0]?.metrics_status === 'ok',
    );
    expect(own.pagination).toBeUndefined();
    expect(own.data[0]).toMatchObject({ status: 'active', vgpus_allocated: 2, profile: '1g.5gb', v_ram_gb: 5 });
    const figure = expect.any(Number);
    expect(own.data[0]?.metrics).toEqual({ cpu_usage: figure, memory_usage: figure, gpu_utilization: figure });
    const all = await read<Listing>('/gpuaas/pool-subscriptions/all?metric_window=last_24h&page=1&limit=10', adminKey);
    expect(all.pagination).toMatchObject({ page: 1, limit: 10 });
    expect((await call('GET', '/gpuaas/pool-subscriptions/all', { key: tenant.key })).status).toBe(403);
    expect((await read<Listing>('/gpuaas/pool-subscriptions/all?page=100000', adminKey)).data).toEqual([]);
  });

  it('shows in its team and in the profiles of its members', async () => {
    await until(
      () => read<TeamView>(`/team/${tenant.teamId}`),
      ({ has_pool_subscription }) => has_pool_subscription,
    );
    await until(
      () => read<{ card_count: number }>('/user/profile'),
      ({ card_count }) => card_count === 1,
    );
  });

  it('can be changed, to no more than there is, and to no less than is in use', async () => {
    const id = held.subscription_id;
    expect((await tenant.resize(id, 15)).status).toBe(422);
    const growing = await tenant.resize(id, 3);
    expect([growing.status, growing.body.status, growing.body.resize?.vgpus]).toEqual([202, 'active', 3]);
    const grown = await until(
      () => tenant.subscription(id),
      ({ resize }) => resize === null,
    );
    expect(grown.vgpus_allocated).toBe(3);
    const workload = await tenant.start(id, { vgpus: 2 });
    expect(workload.status).toBe(202);
    expect((await tenant.resize(id, 1)).status).toBe(409);
    expect([(await tenant.resize(id, 2)).status, (await tenant.subscription(id)).vgpus_allocated]).toEqual([202, 2]);
    const refused = await tenant.unsubscribe(id);
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      expect.stringContaining(`${workload.body.workload_id} (job)`),
    ]);
  });

  it('is on the bill from the moment it is active', async () => {
    const day = new Date().toISOString().slice(0, 10);
    const path = `/team-billing/gpuaas-pool/${tenant.teamId}/${day}T00:00:00/${day}T23:59:59/daily/${node.regionId}/utc`;
    const report = await until(
      () => read<{ total_cost: string; pools: object[] }>(path, tenant.keys.billing_viewer),
      ({ total_cost }) => Number(total_cost) > 0,
    );
    expect(report.pools).toEqual([
      expect.objectContaining({
        pool_id: poolId,
        // The pool sells two profiles.
        v_ram_gb: null,
        subscriptions: [expect.objectContaining({ subscription_id: held.subscription_id, profile: '1g.5gb' })],
      }),
    ]);
  });

  it('has connections that can be asked for', async () => {
    const path = `/gpuaas/refresh-connections?team_id=${tenant.teamId}&gpuaas_id=${node.gpuaasId}`;
    const refresh = () => call('POST', path, { key: tenant.key });
    expect(await refresh()).toMatchObject({ status: 202, body: { status: 'refreshing' } });
    const connections = (search: string) =>
      read<{ data: { refreshed_at: string | null; stale: boolean }[] }>(
        `/gpuaas/connection-info?team_id=${tenant.teamId}&search=${search}`,
      );
    const found = await until(
      // One for which a busy machine has too little time is asked for again.
      async () => {
        await refresh();
        return connections('pool-');
      },
      ({ data: [first] }) => typeof first?.refreshed_at === 'string' && !first.stale,
    );
    expect(found.data).toEqual([
      expect.objectContaining({ subscription_id: held.subscription_id, pods: [], stale: false }),
    ]);
    expect((await connections('%25')).data).toEqual([]);
    expect(await read(`/gpuaas/compatible-instances/${tenant.teamId}`)).toEqual({ data: [] });
  });

  it('keeps its team from being deleted, ends when it is given back, and leaves no trace of capacity', async () => {
    const remove = async () =>
      (await call('DELETE', `/team/${tenant.teamId}`, { key: tenant.keys.team_owner ?? '' })).status;
    expect(await remove()).toBe(409);
    const give = () => tenant.unsubscribe(held.subscription_id, { force: true });
    expect([(await give()).status, (await give()).status]).toEqual([200, 200]);
    await tenant.subscribed(held.subscription_id, 'unsubscribed');
    expect((await list()).data).toEqual([]);
    expect(await list('&include_ended=true&limit=10')).toMatchObject({
      data: [{ status: 'unsubscribed', vgpus_allocated: 0 }],
      pagination: { page: 1, limit: 10, total: 1 },
    });
    expect((await node.read()).gpus.flatMap(({ slices }) => slices)).toEqual([]);
    await until(remove, (status) => status === 204);
  });
});

describe('a node', () => {
  it('that is cordoned takes no newcomers until it is uncordoned', async () => {
    const cordoned = await createNode({ gpus: [{ board: 'L4-24GB', count: 1 }] });
    const pool = await createPool(cordoned, { sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 });
    const newcomer = await createTenant('Cordoned');
    const command = (name: string) => call('POST', `/gpuaas/node/${cordoned.nodeId}/${name}`, { key: adminKey });
    const ask = () => newcomer.subscribe({ pool_id: pool.poolId, vgpus: 1 });
    expect([(await command('cordon')).status, (await ask()).status]).toEqual([200, 422]);
    expect([(await command('uncordon')).status, (await ask()).status]).toEqual([200, 202]);
    expect((await command('reset')).status).toBe(409);
  });
});
