import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  adminKey,
  call,
  compatUrl,
  createTeam,
  fresh,
  freshEmail,
  succeed,
  until,
  type CallOptions,
  type Refusal,
  type TeamView,
} from './client.js';
import { createNode, createPool } from './gpu-inventory.js';

interface Listed {
  items: { id: number; status: string; gpu_count: number; pods: { pod_name: string; pod_status: string }[] }[];
  total_items: number;
}

const image = 'docker.io/library/python:3.13';
let pool: { poolId: string; poolName: string };
let gpuaasId: string;
let policyId: string;

const old = <Body = Refusal & { code: number }>(
  method: string,
  path: string,
  key = adminKey,
  options: CallOptions = {},
) => call<Body>(method, path, { url: compatUrl, ...options, headers: { 'x-API-key': key } });
const ok = <Body>(method: string, path: string, key = adminKey, options: CallOptions = {}): Promise<Body> =>
  succeed<Body>(method, path, { url: compatUrl, ...options, headers: { 'x-api-key': key } });

beforeAll(async () => {
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  gpuaasId = node.gpuaasId;
  pool = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 8 });
  const objects = [{ name: 'python', reference: image }];
  policyId = (
    await succeed<{ id: string }>('POST', '/policy/image', { key: adminKey, body: { name: fresh('policy'), objects } })
  ).id;
});

/** A team as the shop makes it for a customer, and what the customer's pages ask. */
async function aCustomer() {
  const members = [{ email: freshEmail('buyer'), name: 'Buyer', role: 'team_admin' }];
  const team = await ok<TeamView>('POST', '/team', adminKey, {
    body: { name: fresh('Customer'), members, image_policy_id: policyId },
  });
  const price = {
    sku: 'gpu.A100-80GB.mps-8',
    unit: 'vgpu',
    unit_price: '3600',
    valid_from: new Date().toISOString(),
    team_id: team.id,
    force: true,
  };
  await succeed('POST', '/price', { key: adminKey, body: price });
  const list = (key = adminKey) =>
    ok<Listed>('GET', `/gpuaas/pool-subscription?team_id=${team.id}&page=0&per_page=20&metric_window=last_1h`, key);
  const order = (vgpus: number, more: object = {}) =>
    old<Refusal & { subscription_id: number }>('POST', '/gpuaas/pool/subscribe', adminKey, {
      body: { team_id: team.id, pool_id: Number(pool.poolId), vgpus, ...more },
    });
  const end = (subscription_id: number) =>
    old('POST', '/gpuaas/pool/unsubscribe', adminKey, {
      body: { subscription_id, team_id: team.id, pool_id: pool.poolId },
    });
  return { team, key: team.members[0]?.api_key ?? '', list, order, end };
}

const hour = (ms: number): string => new Date(Math.floor(ms / 3_600_000) * 3_600_000).toISOString().slice(0, 16);

describe('a service of a shop', () => {
  it('is ordered with an image, billed by the hour, suspended, resumed, changed in size and ended', async () => {
    const { team, key, list, order, end } = await aCustomer();
    const [offered] = await ok<{ id: number; pricing_hourly: string; available_vgpus: number }[]>(
      'GET',
      `/gpuaas/available-pools?team_id=${team.id}&gpuaas_id=${gpuaasId}`,
    );
    expect(offered).toMatchObject({ id: Number(pool.poolId), gpu_model_type: 'A100-80GB' });
    const images = await ok<{ id: string; objects: { id: string }[] }[]>('GET', '/policy/image');
    const image_uuid = images.find(({ id }) => id === policyId)?.objects[0]?.id;
    const ordered = await order(2, { image_uuid });
    expect(ordered).toMatchObject({ status: 200, body: { subscription_id: expect.any(Number) } });
    const { subscription_id } = ordered.body;
    expect(await order(1)).toMatchObject({
      status: 409,
      body: { code: 409, message: 'Already subscribed to this pool.' },
    });
    const [running] = (
      await until(
        list,
        ({ items }) => items[0]?.pods.length === 2 && items[0].pods.every(({ pod_status }) => pod_status === 'running'),
        30_000,
      )
    ).items;
    expect(running).toMatchObject({
      id: subscription_id,
      status: 'subscribed',
      gpu_count: 2,
      per_pod_info: { image_name: image, image_uuid },
    });

    // By the hour, for a day: what the wallet is charged, and what is in it.
    const now = Date.now();
    const paths = Array.from(
      { length: 24 },
      (_, at) => `${hour(now - (22 - at) * 3_600_000)}/${hour(now - (21 - at) * 3_600_000)}/hourly`,
    );
    // One after the other: a team that asks for many reports at once is told to wait.
    const charge = async (hours: string[]) => {
      let sum = 0;
      for (const path of hours) {
        const bill = `/team-billing/group-by-workspace/${team.id}/${path}?timezone=UTC`;
        sum += (await ok<{ current_month_total_cost: number }>('GET', bill)).current_month_total_cost;
      }
      return sum;
    };
    await until(
      () => charge(paths.slice(-3)),
      (cost) => cost > 1,
    );
    expect(await charge(paths)).toBeGreaterThan(1);
    const pools = await ok<{ details: Record<string, { model_type: string }> }>(
      'GET',
      `/team-billing/gpuaas-pool/${team.id}/${paths[22]}?region_id=all`,
    );
    expect(pools.details[pool.poolName]).toMatchObject({ model_type: 'A100-80GB', vendor_type: 'NVIDIA' });

    await ok('POST', `/team/${team.id}/suspend`, adminKey, { raw: '""' });
    // The other services hear of it some milliseconds later.
    await until(
      () => old('POST', '/gpuaas/pool/subscribe', key, { body: { team_id: team.id, pool_id: pool.poolId, vgpus: 1 } }),
      ({ status }) => status === 403,
    );
    expect((await list(key)).total_items).toBe(1);
    await ok('POST', `/team/${team.id}/unsuspend`, adminKey, { raw: '""' });

    // Another size is another subscription.
    expect(await end(subscription_id)).toMatchObject({ status: 200, body: {} });
    const larger = await until(
      () => order(3),
      ({ status }) => status === 200,
    );
    await until(list, ({ items }) =>
      items.some(({ id, status }) => id === larger.body.subscription_id && status === 'subscribed'),
    );
    expect((await end(larger.body.subscription_id)).status).toBe(200);
    expect((await until(list, ({ total_items }) => total_items === 0)).items).toEqual([]);
    // 409 while it is still being deleted after 8 s.
    const gone = await until(
      () => old('DELETE', `/team/${team.id}`),
      ({ status }) => status !== 409,
    );
    expect(gone).toMatchObject({ status: 200, body: {} });
  });

  it('is not ordered where the pool has no room, in the words that shops look for', async () => {
    const { order } = await aCustomer();
    expect(await order(9_000)).toMatchObject({
      status: 422,
      body: { code: 422, message: expect.stringContaining('Insufficient resources') },
    });
  });

  it('of two that are ordered at once is one', async () => {
    const { order, list, end } = await aCustomer();
    const statuses = (await Promise.all([order(1), order(1), order(1)])).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 409, 409]);
    const [held] = (await list()).items;
    expect((await end(held?.id ?? 0)).status).toBe(200);
  });

  it('is nobody else’s', async () => {
    const { order, list, end, team } = await aCustomer();
    const { subscription_id } = (await order(1)).body;
    const ours = await createTeam(fresh('Ours'), ['team_owner']);
    const key = ours.keys.team_owner ?? '';
    const calls: [string, string, object?][] = [
      ['GET', `/gpuaas/available-regions?team_id=${team.id}`],
      ['GET', `/gpuaas/available-pools?team_id=${team.id}&gpuaas_id=${gpuaasId}`],
      ['GET', `/gpuaas/pool-subscription?team_id=${team.id}`],
      ['GET', `/gpuaas/connection-info?team_id=${team.id}&subscription_id=${subscription_id}`],
      ['GET', `/gpuaas/compatible-instances/${team.id}`],
      [
        'POST',
        '/gpuaas/calculate-pool-subscription',
        { pool_id: pool.poolId, vgpus: 1, duration_hours: 1, team_id: team.id },
      ],
      ['POST', '/gpuaas/pool/subscribe', { pool_id: pool.poolId, vgpus: 1, team_id: team.id }],
      ['POST', '/gpuaas/pool/unsubscribe', { subscription_id }],
      ['POST', '/gpuaas/pool/unsubscribe', { subscription_id, team_id: ours.team.id }],
    ];
    for (const [method, path, body] of calls) {
      expect([method, path, (await old(method, path, key, { body })).status]).toEqual([method, path, 404]);
    }
    expect((await old('GET', '/gpuaas/all-pools', key)).status).toBe(403);
    expect((await list()).items[0]).toMatchObject({ id: subscription_id });
    expect(
      (await old('POST', '/gpuaas/pool/unsubscribe', adminKey, { body: { subscription_id, team_id: ours.team.id } }))
        .status,
    ).toBe(404);
    expect((await end(subscription_id)).status).toBe(200);
  });
});

describe('the page of a portal', () => {
  it('loads', async () => {
    const { team, key, order, end } = await aCustomer();
    const { subscription_id } = (await order(1)).body;
    const month = `${new Date().toISOString().slice(0, 7)}-01T00:00`;
    const paths = [
      `/team/${team.id}`,
      `/team/${team.id}/members?page=1&itemsPerPage=50`,
      `/team/${team.id}/resource-overview`,
      `/workspace?teamId=${team.id}&page=0&itemsPerPage=10`,
      '/roles',
      `/gpuaas/available-regions?team_id=${team.id}`,
      `/gpuaas/available-pools?team_id=${team.id}`,
      `/gpuaas/pool-subscription?team_id=${team.id}&page=0&per_page=10&metric_window=last_24h`,
      `/gpuaas/connection-info?team_id=${team.id}&subscription_id=${subscription_id}`,
      `/gpuaas/compatible-instances/${team.id}`,
      `/gpuaas/${team.id}/metrics?page=0&itemsPerPage=10`,
      `/gpuaas/${team.id}/metrics-graph?granularity=1d`,
      `/team-billing/summary/${team.id}/${month}/2100-01-01T00:00?timezone=local`.replace(
        '2100',
        String(new Date().getUTCFullYear() + 1),
      ),
    ];
    const answers = await Promise.all(paths.map((path) => old<object>('GET', path, key)));
    expect(answers.map(({ status }, at) => [paths[at], status])).toEqual(paths.map((path) => [path, 200]));
    expect((await end(subscription_id)).status).toBe(200);
  });
});
