import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, fresh, succeed, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

type Who = 'platform_admin' | 'member' | 'viewer';

/** Every operation on GPUs, and the least who may do it. Where something is left out it is that of our team. */
const operations: { operation: string; who: Who; query?: string; body?: object }[] = [
  { operation: 'POST /region', who: 'platform_admin', body: { region_name: '{fresh}' } },
  { operation: 'GET /region', who: 'platform_admin' },
  { operation: 'POST /gpuaas', who: 'platform_admin', body: { region_id: '{region_id}', name: '{fresh}' } },
  { operation: 'GET /gpuaas', who: 'platform_admin' },
  { operation: 'PUT /gpuaas/{gpuaas_id}/cluster', who: 'platform_admin', body: { driver: 'simulated' } },
  { operation: 'GET /gpuaas/{gpuaas_id}/cluster', who: 'platform_admin' },
  { operation: 'POST /gpuaas/{gpuaas_id}/cluster/check', who: 'platform_admin' },
  {
    operation: 'POST /gpuaas/node',
    who: 'platform_admin',
    body: { gpuaas_id: '{gpuaas_id}', node_name: '{fresh}', gpus: [{ board: 'L4-24GB', count: 1 }] },
  },
  { operation: 'GET /gpuaas/node', who: 'platform_admin' },
  { operation: 'GET /gpuaas/node/{node_id}', who: 'platform_admin' },
  { operation: 'POST /gpuaas/node/{node_id}/initialise', who: 'platform_admin' },
  { operation: 'POST /gpuaas/node/{node_id}/reset', who: 'platform_admin' },
  { operation: 'POST /gpuaas/node/{node_id}/cordon', who: 'platform_admin' },
  { operation: 'POST /gpuaas/node/{node_id}/uncordon', who: 'platform_admin' },
  {
    operation: 'POST /gpuaas/pool/create',
    who: 'platform_admin',
    body: {
      gpuaas_id: '{gpuaas_id}',
      pool_name: '{fresh}',
      gpu_ids: ['{gpu_id}'],
      sharing_mode: 'Spatial',
      mechanism: 'mps',
      replicas: 2,
    },
  },
  { operation: 'GET /gpuaas/all-pools', who: 'platform_admin' },
  { operation: 'GET /gpuaas/pool-subscriptions/all', who: 'platform_admin' },
  { operation: 'GET /gpuaas/available-regions', who: 'viewer', query: 'team_id={team_id}' },
  { operation: 'GET /gpuaas/available-pools', who: 'viewer', query: 'team_id={team_id}' },
  { operation: 'GET /gpuaas/pool/{pool_id}/gpus', who: 'viewer', query: 'team_id={team_id}' },
  { operation: 'GET /gpuaas/pool-subscription', who: 'viewer', query: 'team_id={team_id}' },
  { operation: 'GET /gpuaas/pool-subscription/{subscription_id}/utilization', who: 'viewer' },
  { operation: 'GET /gpuaas/workload', who: 'viewer', query: 'team_id={team_id}' },
  { operation: 'GET /gpuaas/compatible-instances/{team_id}', who: 'viewer' },
  { operation: 'GET /gpuaas/connection-info', who: 'member', query: 'team_id={team_id}' },
  { operation: 'POST /gpuaas/refresh-connections', who: 'member', query: 'team_id={team_id}' },
  {
    operation: 'POST /gpuaas/pool/subscribe',
    who: 'member',
    body: { team_id: '{team_id}', pool_id: '{pool_id}', vgpus: 1 },
  },
  { operation: 'PUT /gpuaas/pool-subscription/{subscription_id}', who: 'member', body: { vgpus: 3 } },
  {
    operation: 'POST /gpuaas/workload',
    who: 'member',
    body: { subscription_id: '{subscription_id}', name: '{fresh}' },
  },
  { operation: 'DELETE /gpuaas/workload/{workload_id}', who: 'member' },
  {
    operation: 'POST /gpuaas/pool/unsubscribe',
    who: 'member',
    body: { subscription_id: '{subscription_id}', force: true },
  },
];
const ofTeams = operations.filter(({ who }) => who !== 'platform_admin');

const removed = ['GET /gpuaas/{gpuaas_id}/connection-info', 'GET /gpuaas/{gpuaas_id}/pool-subscription'];

let ours: Awaited<ReturnType<typeof createTenant>>;
let theirs: Awaited<ReturnType<typeof createTenant>>;
let ids: Record<string, string>;
let before: object[];
const missing: Record<string, string> = {
  team_id: '01890000-0000-7000-8000-000000000000',
  subscription_id: '999999999999',
  workload_id: '999999999999',
};

beforeAll(async () => {
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 2 }] });
  const [pooled = '', gpu_id = ''] = node.gpuIds;
  const { poolId } = await createPool(node, {
    gpu_ids: [pooled],
    sharing_mode: 'Spatial',
    mechanism: 'mps',
    replicas: 8,
  });
  ours = await createTenant('Ours', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  theirs = await createTenant('Theirs', ['team_owner', 'member']);
  const { subscription_id } = (await ours.subscribe({ pool_id: poolId, vgpus: 2 })).body;
  await ours.subscribed(subscription_id);
  const { workload_id } = (await ours.start(subscription_id)).body;
  await ours.runs(workload_id);
  ids = {
    region_id: node.regionId,
    gpuaas_id: node.gpuaasId,
    node_id: node.nodeId,
    gpu_id,
    pool_id: poolId,
    team_id: ours.teamId,
    subscription_id,
    workload_id,
  };
  before = await everything();
});

/** What the operator sees of our GPU service and of our team. Measured figures change by themselves. */
async function everything(): Promise<object[]> {
  const read = (path: string) => succeed<{ data?: object[] }>('GET', path, { key: adminKey });
  return [
    await read(`/gpuaas/node?gpuaas_id=${ids.gpuaas_id}`),
    await read(`/gpuaas/all-pools?gpuaas_id=${ids.gpuaas_id}`),
    await read(`/gpuaas/available-pools?team_id=${ours.teamId}&gpuaas_id=${ids.gpuaas_id}`),
    await read(`/gpuaas/workload?team_id=${ours.teamId}&include_ended=true&limit=100`),
    ...((await read(`/gpuaas/pool-subscription?team_id=${ours.teamId}&include_ended=true`)).data ?? []).map(
      (found) => ({
        ...found,
        metrics: null,
        metrics_status: null,
      }),
    ),
    (await read(`/gpuaas/pool-subscription?team_id=${theirs.teamId}&include_ended=true`)).data ?? [],
  ];
}

function ask({ operation, query, body }: (typeof operations)[number], key: string | undefined, named = ids) {
  const [method = '', path = ''] = operation.split(' ');
  const fill = (text: string) =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'fresh' ? fresh('x') : (named[name] ?? '')));
  return call<Refusal>(method, fill(query ? `${path}?${query}` : path), {
    key,
    ...(body && { raw: fill(JSON.stringify(body)) }),
  });
}
const comparable = (body: object) => ({ ...body, instance: '', request_id: '' });

describe('nobody comes near the GPUs of a team but its own people and the operator', () => {
  it('and every operation that there is, is looked at here', async () => {
    const { paths } = await succeed<{ paths: Record<string, object> }>('GET', '/openapi.json');
    const described = Object.entries(paths)
      .filter(([path]) => /^(?:\/api)?\/(?:gpuaas|region)(?:\/|$)/.test(path))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/^\/api/, '')}`),
      );
    expect(described.toSorted()).toEqual([...removed, ...operations.map(({ operation }) => operation)].toSorted());
  });

  it.each(removed)('%s is gone for everybody', async (operation) => {
    expect(await ask({ operation, who: 'viewer' }, undefined)).toMatchObject({ status: 401 });
    for (const key of [ours.key, theirs.key, adminKey]) {
      expect(await ask({ operation, who: 'viewer' }, key)).toMatchObject({ status: 410, body: { code: 'gone' } });
    }
  });

  it.each(operations)('$operation does not answer without a key', async (row) => {
    const answer = await ask(row, undefined);
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthenticated']);
  });

  it.each(operations.filter(({ who }) => who === 'platform_admin'))('$operation is the operator’s', async (row) => {
    for (const key of [ours.keys.team_owner, theirs.key]) {
      const answer = await ask(row, key);
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    }
  });

  it.each(ofTeams)('$operation answers another team as if there were nothing', async (row) => {
    for (const key of [theirs.keys.team_owner, theirs.key]) {
      const foreign = await ask(row, key);
      const unknown = await ask(row, key, { ...ids, ...missing });
      expect([foreign.status, foreign.body.code]).toEqual([404, 'not_found']);
      expect([unknown.status, comparable(unknown.body)]).toEqual([404, comparable(foreign.body)]);
    }
  });

  it.each(ofTeams.filter(({ who }) => who === 'member'))('$operation takes more than to look on', async (row) => {
    for (const key of [ours.keys.viewer, ours.keys.billing_viewer]) {
      const answer = await ask(row, key);
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    }
  });

  it.each(ofTeams.filter(({ who }) => who === 'viewer'))('$operation is for everybody of the team', async (row) => {
    for (const key of [ours.keys.viewer, ours.keys.billing_viewer, ours.key, adminKey])
      expect((await ask(row, key)).status).toBe(200);
  });

  it.each(['pool-subscription', 'workload'])(
    '%s shows a subscription under its own team alone, whoever asks',
    async (listing) => {
      const path = `/gpuaas/${listing}?team_id=${theirs.teamId}&subscription_id=`;
      for (const key of [theirs.key, adminKey]) {
        const foreign = await call<Refusal>('GET', `${path}${ids.subscription_id}`, { key });
        const unknown = await call<Refusal>('GET', `${path}${missing.subscription_id}`, { key });
        expect([foreign.status, comparable(foreign.body)]).toEqual([404, comparable(unknown.body)]);
      }
    },
  );

  it('and a team does not put what it takes into the workspace of another', async () => {
    const [workspace] = ours.team.workspaces;
    const refused = await theirs.subscribe({ pool_id: ids.pool_id, vgpus: 1, workspace_id: workspace?.id });
    expect([refused.status, refused.body.code]).toEqual([404, 'not_found']);
  });

  it('which leaves everything as it was', async () => {
    expect(await everything()).toEqual(before);
  });
});

describe('a suspended team', () => {
  const suspend = (command: string) => succeed('POST', `/team/${ours.teamId}/${command}`, { key: adminKey });
  const row = (operation: string) => ofTeams.filter((known) => known.operation === operation);

  it('takes nothing more, and goes on reading', async () => {
    await suspend('suspend');
    // What was told to the service of teams has to come to that of GPUs.
    await until(
      () => ours.resize(ids.subscription_id ?? '', 10_000),
      ({ status }) => status !== 422,
    );
    const growing = [
      'POST /gpuaas/pool/subscribe',
      'PUT /gpuaas/pool-subscription/{subscription_id}',
      'POST /gpuaas/workload',
    ].flatMap(row);
    for (const operation of growing) {
      for (const key of [ours.key, ours.keys.team_owner]) {
        const answer = await ask(operation, key);
        expect([operation.operation, answer.status, answer.body.code]).toEqual([
          operation.operation,
          403,
          'team_suspended',
        ]);
      }
    }
    for (const operation of ofTeams.filter(({ operation: name }) => name.startsWith('GET'))) {
      expect([operation.operation, (await ask(operation, ours.key)).status]).toEqual([operation.operation, 200]);
    }
    expect(await everything()).toEqual(before);
  });

  it('stops and gives back what it has', async () => {
    expect((await ours.stop(ids.workload_id ?? '')).status).toBe(202);
    await ours.runs(ids.workload_id ?? '', 'stopped');
    expect((await ours.unsubscribe(ids.subscription_id ?? '')).status).toBe(200);
    await ours.subscribed(ids.subscription_id ?? '', 'unsubscribed');
    await suspend('unsuspend');
    const again = await until(
      () => ours.subscribe({ pool_id: ids.pool_id, vgpus: 8 }),
      ({ status }) => status === 202,
    );
    await ours.subscribed(again.body.subscription_id);
  });
});
