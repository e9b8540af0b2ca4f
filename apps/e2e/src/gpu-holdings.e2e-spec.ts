import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, fresh, succeed, until, type TeamView } from './client.js';
import { createNode, createPool, createTenant, type SubscriptionView } from './gpu-inventory.js';

interface Page {
  data: SubscriptionView[];
  pagination?: { page: number; limit: number; total: number };
}

const quarters = { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 };
const idsOf = ({ data }: Page) => data.map(({ subscription_id }) => subscription_id);

describe('what a team holds in two pools', () => {
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  let here: Awaited<ReturnType<typeof createNode>>;
  let there: Awaited<ReturnType<typeof createNode>>;
  let held: string[];
  const read = <Body>(path: string, key = tenant.key) => succeed<Body>('GET', path, { key });
  const list = (query = '') => read<Page>(`/gpuaas/pool-subscription?team_id=${tenant.teamId}${query}`);
  const team = () => read<TeamView>(`/team/${tenant.teamId}`);
  const profile = () => read<{ card_count: number }>('/user/profile');

  beforeAll(async () => {
    tenant = await createTenant('Holders', ['team_owner', 'member', 'billing_viewer']);
    // Two GPUs, and one of another GPU service.
    here = await createNode({ gpus: [{ board: 'A100-80GB', count: 2 }] });
    there = await createNode({ gpus: [{ board: 'L4-24GB', count: 1 }] });
    const [first, second] = [await createPool(here, quarters), await createPool(there, quarters)];
    expect(await team()).toMatchObject({ has_pool_subscription: false });
    expect(await profile()).toMatchObject({ card_count: 0 });
    held = [];
    for (const [pool_id, vgpus] of [
      [first.poolId, 3],
      [first.poolId, 2],
      [second.poolId, 1],
    ] as const) {
      const { body } = await tenant.subscribe({ pool_id, vgpus });
      held.push(body.subscription_id);
      await tenant.subscribed(body.subscription_id);
    }
  });

  it('is on as many cards as it says, in the profile of each of its people', async () => {
    await until(team, ({ has_pool_subscription }) => has_pool_subscription);
    await until(profile, ({ card_count }) => card_count === 3);
    await until(
      () => read<{ card_count: number }>('/user/profile', tenant.keys.team_owner),
      ({ card_count }) => card_count === 3,
    );
  });

  it('is shown by region to its members, and to nobody of another team', async () => {
    const path = `/team/${tenant.teamId}/resource-overview`;
    const overview = await read<{ team_id: string; total: object; regions: object[] }>(
      path,
      tenant.keys.billing_viewer,
    );
    const none = { vgpus_in_use: 0, gpu_workloads: 0, baremetal_instances: 0, baremetal_gpus: 0 };
    expect(overview).toMatchObject({
      team_id: tenant.teamId,
      total: { vgpus: 6, gpus: 3, gpu_subscriptions: 3, ...none },
      regions: [
        { region_id: here.regionId, vgpus: 5, gpus: 2, gpu_subscriptions: 2, ...none },
        { region_id: there.regionId, vgpus: 1, gpus: 1, gpu_subscriptions: 1, ...none },
      ],
    });
    const stranger = await createTenant('Strangers');
    const [foreign, missing] = await Promise.all(
      [path, '/team/01890000-0000-7000-8000-000000000000/resource-overview'].map((asked) =>
        call('GET', asked, { key: stranger.key }),
      ),
    );
    expect([foreign?.status, foreign?.body.detail]).toEqual([404, missing?.body.detail]);
  });

  it('is listed whole, by GPU service, and by pages', async () => {
    expect(idsOf(await list())).toEqual(held);
    expect((await list()).pagination).toBeUndefined();
    expect(idsOf(await list(`&gpuaas_id=${there.gpuaasId}`))).toEqual(held.slice(2));
    const first = await list('&page=1&limit=2');
    expect([idsOf(first), first.pagination]).toEqual([held.slice(0, 2), { page: 1, limit: 2, total: 3 }]);
    const last = await list('&page=2&limit=2');
    expect([idsOf(last), last.pagination]).toEqual([held.slice(2), { page: 2, limit: 2, total: 3 }]);
    expect(idsOf(await list('&page=3&limit=2'))).toEqual([]);
    expect(await list(`&gpuaas_id=${here.gpuaasId}`)).toMatchObject({
      data: [
        { profile: 'mps-4', v_ram_gb: 20, vgpus_allocated: 3 },
        { profile: 'mps-4', v_ram_gb: 20, vgpus_allocated: 2 },
      ],
    });
  });

  it.each(['last_1h', 'last_6h', 'last_24h', 'last_7d', 'last_30d'])('is measured over %s', async (window) => {
    const { data } = await until(
      () => list(`&metric_window=${window}`),
      (page) => page.data.every(({ metrics_status }) => metrics_status === 'ok'),
    );
    for (const { metrics } of data) {
      for (const figure of [metrics.cpu_usage, metrics.memory_usage, metrics.gpu_utilization]) {
        expect([figure >= 0 && figure <= 100, Number(figure.toFixed(2))]).toEqual([true, figure]);
      }
    }
  });

  it('is in the list of all teams, which the operator reads page by page', async () => {
    const ours = async () => {
      const seen: string[] = [];
      for (let page = 1; ; page += 1) {
        const found = await read<Page>(
          `/gpuaas/pool-subscriptions/all?metric_window=last_7d&page=${page}&limit=2`,
          adminKey,
        );
        expect(found.pagination).toMatchObject({ page, limit: 2 });
        if (found.data.length === 0) return seen.filter((id) => held.includes(id));
        seen.push(...idsOf(found));
      }
    };
    // Where a subscription of another story ends meanwhile, those after it move up, and one may be on no page that is
    // read.
    await until(ours, (seen) => seen.join() === held.join());
  });

  it('is shown where connections are asked for, each subscription once, by its pool’s name and no wildcard', async () => {
    const connections = (query = '') =>
      read<{ data: { subscription_id: string; pool_name: string }[] }>(
        `/gpuaas/connection-info?team_id=${tenant.teamId}${query}`,
      );
    const { data } = await connections();
    expect(data.map(({ subscription_id }) => subscription_id)).toEqual(held);
    expect((await connections(`&gpuaas_id=${there.gpuaasId}`)).data.length).toBe(1);
    expect((await connections(`&search=${data[2]?.pool_name}`)).data).toEqual(data.slice(2));
    for (const wildcard of ['%25', '_', 'p%25l']) expect((await connections(`&search=${wildcard}`)).data).toEqual([]);
    const refreshes = await Promise.all(
      Array.from({ length: 5 }, () =>
        call('POST', `/gpuaas/refresh-connections?team_id=${tenant.teamId}`, { key: tenant.key }),
      ),
    );
    expect(refreshes.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202]);
  });

  it('costs its price until it is given back, and is no more in any figure then', async () => {
    const price = {
      sku: 'gpu.A100-80GB.mps-4',
      unit: 'vgpu',
      unit_price: '3600',
      valid_from: '2026-01-01T00:00:00Z',
      team_id: tenant.teamId,
    };
    await succeed('POST', '/price', { key: adminKey, body: { ...price, force: true } });
    expect(
      await until(
        () => tenant.offers(here.gpuaasId),
        ([offer]) => offer?.unit_price === '3600',
      ),
    ).toMatchObject([{ profile: 'mps-4', v_ram_gb: 20, available_vgpus: 3 }]);
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    const range = `${day(-1)}T00:00:00/${day(2)}T00:00:00/daily`;
    const bill = (region: string) =>
      read<{
        total_cost: string;
        unpriced: { sku: string }[];
        pools: { pool_name: string; subscriptions: { subscription_id: string; total_cost: string }[] }[];
      }>(`/team-billing/gpuaas-pool/${tenant.teamId}/${range}/${region}/utc`, tenant.keys.billing_viewer);
    const running = await until(
      () => bill(here.regionId),
      // Billing hears of one subscription after the other.
      ({ total_cost, pools }) => Number(total_cost) > 0 && pools.flatMap((pool) => pool.subscriptions).length === 2,
    );
    expect(running.pools.length).toBe(1);
    expect(running.pools[0]?.subscriptions.map(({ subscription_id }) => subscription_id).toSorted()).toEqual(
      held.slice(0, 2).toSorted(),
    );
    expect((await bill(here.regionId)).total_cost).not.toBe(running.total_cost);
    const free = await until(
      () => bill(there.regionId),
      ({ unpriced }) => unpriced.length > 0,
    );
    expect(free).toMatchObject({ total_cost: '0', unpriced: [{ sku: 'gpu.L4-24GB.mps-4' }] });

    for (const id of held) expect((await tenant.unsubscribe(id)).status).toBe(200);
    for (const id of held) await tenant.subscribed(id, 'unsubscribed');
    await until(team, ({ has_pool_subscription }) => !has_pool_subscription);
    await until(profile, ({ card_count }) => card_count === 0);
    const ended = await until(
      async () => [await bill('all'), await bill('all')] as const,
      ([one, other]) => one.total_cost === other.total_cost,
    );
    expect(Number(ended[0].total_cost)).toBeGreaterThan(0);
    expect(idsOf(await list())).toEqual([]);
    expect(idsOf(await list('&include_ended=true'))).toEqual(held);
    expect(await tenant.offers(here.gpuaasId)).toMatchObject([{ available_vgpus: 8 }]);
  });
});

describe('a subscription that is hardly asked for', () => {
  it('can be given back while it is being made, again and again, and its place is free', async () => {
    const tenant = await createTenant('Hasty');
    // It waits for its GPU for 3 s.
    const node = await createNode({ name: 'gpu-01.switch-slow' });
    const { poolId } = await createPool(node, quarters);
    const { body } = await tenant.subscribe({ pool_id: poolId, vgpus: 4 });
    expect([body.status, (await tenant.offers(node.gpuaasId))[0]?.available_vgpus]).toEqual(['subscribing', 0]);
    for (let time = 0; time < 3; time += 1) {
      const given = await tenant.unsubscribe(body.subscription_id);
      expect([given.status, given.body.status]).toEqual([200, expect.stringMatching(/^unsubscrib(?:ing|ed)$/)]);
    }
    await tenant.subscribed(body.subscription_id, 'unsubscribed');
    expect(await tenant.offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 4 }]);
    const late = await tenant.unsubscribe(body.subscription_id);
    expect([late.status, late.body.status, late.body.vgpus_allocated]).toEqual([200, 'unsubscribed', 0]);
  });

  it('is one for ten callers with one Idempotency-Key, whose key goes with no other body', async () => {
    const tenant = await createTenant('Eager');
    const node = await createNode();
    const { poolId } = await createPool(node, quarters);
    const headers = { 'idempotency-key': fresh('once') };
    const ask = (vgpus: number) =>
      call<SubscriptionView & { code: string }>('POST', '/gpuaas/pool/subscribe', {
        key: tenant.key,
        headers,
        body: { team_id: tenant.teamId, pool_id: poolId, vgpus },
      });
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(1)));
    expect(answers.filter(({ status }) => status !== 202 && status !== 409)).toEqual([]);
    const made = answers.filter(({ status }) => status === 202);
    expect(new Set(made.map(({ body }) => body.subscription_id)).size).toBe(1);
    const other = await ask(2);
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_mismatch']);
    expect(await tenant.offers(node.gpuaasId)).toMatchObject([{ available_vgpus: 3 }]);
  });

  it('is never given twice: of many who ask at once as many get one as there are slices', async () => {
    const node = await createNode();
    const { poolId } = await createPool(node, quarters);
    const [one, other] = [await createTenant('One'), await createTenant('Other')];
    const asked = Array.from({ length: 12 }, (_, at) =>
      (at % 2 === 0 ? one : other).subscribe({ pool_id: poolId, vgpus: 1 }),
    );
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(4).fill(202), ...Array(8).fill(422)]);
    const gpu = await until(
      async () => (await node.read()).gpus[0],
      (found) => found?.slices.length === 4,
    );
    expect(gpu?.slices.map(({ start }) => start).toSorted()).toEqual([0, 1, 2, 3]);
  });
});
