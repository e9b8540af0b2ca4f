import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, type TeamView } from './client.js';
import { createNode, createPool, eventually, fresh, nodeOf, type PoolUnderTest, type SubscriptionView } from './gpu-inventory.js';

interface Listing {
  data: (SubscriptionView & { team_id: string; pool_name: string; metrics: Record<string, number>; metrics_status: string })[];
  pagination?: { page: number; limit: number; total: number };
}

let team: TeamView;
let keys: Record<string, string>;
let pool: PoolUnderTest;
let held: SubscriptionView;
const get = <Body = Record<string, unknown>>(path: string, key = keys.member) => call<Body>('GET', path, { key });
const post = <Body = Record<string, unknown>>(path: string, body: object, key = keys.member) => call<Body>('POST', path, { key, body });
const one = async (id = held.subscription_id) =>
  (await get<Listing>(`/gpuaas/pool-subscription?team_id=${team.id}&subscription_id=${id}`)).body.data[0];

beforeAll(async () => {
  ({ team, keys } = await createTeam('Subscribers', ['team_owner', 'member', 'viewer', 'billing_viewer']));
  pool = await createPool({ sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.5gb', '3g.20gb'] }, { board: 'A100-40GB', count: 2 });
});

describe('a subscription', () => {
  it('is taken once for one Idempotency-Key, at the price that the pool shows', async () => {
    const price = {
      sku: 'gpu.A100-40GB.1g.5gb',
      unit: 'vgpu',
      unit_price: '3600',
      valid_from: '2026-01-01T00:00:00Z',
      force: true,
      team_id: team.id,
    };
    expect((await post('/price', price, adminKey)).status).toBe(201);
    const offer = await eventually(
      async () =>
        (
          await get<{ data: { profiles: { unit_price: string | null }[] }[] }>(
            `/gpuaas/available-pools?team_id=${team.id}&gpuaas_id=${pool.gpuaas_id}`,
          )
        ).body.data[0],
      (seen) => seen?.profiles[0]?.unit_price === '3600',
    );
    expect(offer).toMatchObject({
      pool_id: pool.pool_id,
      isolation: 'hardware',
      profiles: [
        { profile: '1g.5gb', v_ram_gb: 5, available_vgpus: 14 },
        { profile: '3g.20gb', v_ram_gb: 20, available_vgpus: 4, unit_price: null },
      ],
    });
    const ask = () =>
      call<SubscriptionView>('POST', '/gpuaas/pool/subscribe', {
        key: keys.member ?? '',
        headers: { 'idempotency-key': 'once' },
        body: { team_id: team.id, pool_id: pool.pool_id, vgpus: 2, name: 'training' },
      });
    const [first, second] = [await ask(), await ask()];
    expect([first.status, second.status, second.body]).toEqual([202, 202, first.body]);
    held = first.body;
    await eventually(one, (seen) => seen?.status === 'active');
    expect((await get<Listing>(`/gpuaas/pool-subscription?team_id=${team.id}`)).body.data.length).toBe(1);
  });

  it('is listed with its metrics, for its team and for the operator', async () => {
    const path = `/gpuaas/pool-subscription?team_id=${team.id}&gpuaas_id=${pool.gpuaas_id}&metric_window=last_1h`;
    const own = await eventually(
      () => get<Listing>(path, keys.viewer),
      ({ body }) => body.data[0]?.metrics_status === 'ok',
    );
    expect(own.body.pagination).toBeUndefined();
    expect(own.body.data[0]).toMatchObject({ status: 'active', vgpus_allocated: 2, profile: '1g.5gb', v_ram_gb: 5 });
    const metrics = own.body.data[0]?.metrics ?? {};
    for (const figure of [metrics.cpu_usage, metrics.memory_usage, metrics.gpu_utilization]) expect(figure).toEqual(expect.any(Number));
    const all = await get<Listing>('/gpuaas/pool-subscriptions/all?metric_window=last_24h&page=1&limit=10', adminKey);
    expect([all.status, all.body.pagination]).toEqual([200, expect.objectContaining({ page: 1, limit: 10 })]);
    expect((await get('/gpuaas/pool-subscriptions/all')).status).toBe(403);
    const late = await get<Listing>('/gpuaas/pool-subscriptions/all?page=100000', adminKey);
    expect([late.status, late.body.data]).toEqual([200, []]);
  });

  it('shows in its team and in the profiles of its members', async () => {
    await eventually(
      async () => (await get<TeamView>(`/team/${team.id}`)).body,
      (seen) => seen.has_pool_subscription,
    );
    await eventually(
      async () => (await get<{ card_count: number }>('/user/profile')).body,
      (seen) => seen.card_count === 1,
    );
  });

  it('can be changed, to no more than there is, and to no less than is in use', async () => {
    const resize = (vgpus: number) =>
      call<SubscriptionView & { detail: string }>('PUT', `/gpuaas/pool-subscription/${held.subscription_id}`, {
        key: keys.member ?? '',
        body: { vgpus },
      });
    expect((await resize(15)).status).toBe(422);
    expect([(await resize(3)).status, (await one())?.vgpus_allocated]).toEqual([200, 3]);
    const workload = await post<{ workload_id: string }>('/gpuaas/workload', {
      subscription_id: held.subscription_id,
      name: 'job',
      vgpus: 2,
    });
    expect(workload.status).toBe(202);
    expect((await resize(1)).status).toBe(409);
    expect((await resize(2)).status).toBe(200);
    const refused = await post<{ detail: string }>('/gpuaas/pool/unsubscribe', { subscription_id: held.subscription_id });
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining(`${workload.body.workload_id} (job)`)]);
  });

  it('is on the bill from the moment it is active, and its connections can be asked for', async () => {
    const day = new Date().toISOString().slice(0, 10);
    const report = await eventually(
      async () =>
        (
          await get<{ total_cost: string; pools: object[] }>(
            `/team-billing/gpuaas-pool/${team.id}/${day}T00:00:00/${day}T23:59:59/daily/${pool.region_id}/utc`,
            keys.billing_viewer,
          )
        ).body,
      (seen) => Number(seen.total_cost) > 0,
    );
    expect(report.pools).toEqual([
      expect.objectContaining({
        pool_id: pool.pool_id,
        v_ram_gb: 5,
        subscriptions: [expect.objectContaining({ subscription_id: held.subscription_id, profile: '1g.5gb' })],
      }),
    ]);
    const refresh = await call<{ status: string }>('POST', `/gpuaas/refresh-connections?team_id=${team.id}&gpuaas_id=${pool.gpuaas_id}`, {
      key: keys.member ?? '',
    });
    expect([refresh.status, refresh.body.status]).toEqual([202, 'refreshing']);
    const connections = await eventually(
      async () => (await get<{ data: { refreshed_at: string | null }[] }>(`/gpuaas/connection-info?team_id=${team.id}&search=pool-`)).body,
      (seen) => typeof seen.data[0]?.refreshed_at === 'string',
    );
    expect(connections.data).toEqual([expect.objectContaining({ subscription_id: held.subscription_id, pods: [], stale: false })]);
    expect((await get<{ data: object[] }>(`/gpuaas/connection-info?team_id=${team.id}&search=%25`)).body.data).toEqual([]);
    expect(await get(`/gpuaas/compatible-instances/${team.id}`)).toMatchObject({ status: 200, body: { data: [] } });
  });

  it('keeps its team from being deleted, ends when it is given back, and leaves no trace of capacity', async () => {
    expect((await call('DELETE', `/team/${team.id}`, { key: keys.team_owner ?? '' })).status).toBe(409);
    const give = () => post<SubscriptionView>('/gpuaas/pool/unsubscribe', { subscription_id: Number(held.subscription_id), force: true });
    expect((await give()).status).toBe(200);
    expect((await give()).status).toBe(200);
    await eventually(one, (seen) => seen?.status === 'unsubscribed');
    expect((await get<Listing>(`/gpuaas/pool-subscription?team_id=${team.id}`)).body.data).toEqual([]);
    const ended = await get<Listing>(`/gpuaas/pool-subscription?team_id=${team.id}&include_ended=true&limit=10`);
    expect(ended.body).toMatchObject({
      data: [{ status: 'unsubscribed', vgpus_allocated: 0 }],
      pagination: { page: 1, limit: 10, total: 1 },
    });
    expect((await nodeOf(pool.node_id)).gpus.flatMap(({ slices }) => slices)).toEqual([]);
    await eventually(
      async () => (await call('DELETE', `/team/${team.id}`, { key: keys.team_owner ?? '' })).status,
      (status) => status === 204,
    );
  });
});

describe('a node', () => {
  it('that cannot be initialised says why and when it is tried again, and by hand at once', async () => {
    const { node_id } = await createNode([{ board: 'L40S-48GB', count: 1 }], '.init-fail');
    const failed = await eventually(
      () => nodeOf(node_id),
      ({ status }) => status === 'init_failed',
    );
    expect(failed).toMatchObject({ reason: 'The node failed: init.', retry_at: expect.stringMatching(/Z$/) });
    expect((await call('POST', `/gpuaas/node/${node_id}/initialise`, { key: adminKey })).status).toBe(202);
  });

  it('that is cordoned takes no newcomers until it is uncordoned', async () => {
    const { team: other, keys: theirs } = await createTeam('Cordoned', ['member']);
    const cordoned = await createPool({ sharing_mode: 'Temporal', mechanism: 'time_slicing', replicas: 4 }, { board: 'L4-24GB' });
    const command = (name: string) => call('POST', `/gpuaas/node/${cordoned.node_id}/${name}`, { key: adminKey });
    const ask = () =>
      post('/gpuaas/pool/subscribe', { team_id: other.id, pool_id: cordoned.pool_id, vgpus: 1, name: fresh('s') }, theirs.member);
    expect([(await command('cordon')).status, (await ask()).status]).toEqual([200, 422]);
    expect([(await command('uncordon')).status, (await ask()).status]).toEqual([200, 202]);
    expect((await command('reset')).status).toBe(409);
  });
});
