import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, fresh, succeed, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

/** What is asked, beside what would do; the answer, and the field that it names. */
type Attempt = [wrong: object, status: number, named: string];

let tenant: Awaited<ReturnType<typeof createTenant>>;
let node: Awaited<ReturnType<typeof createNode>>;
let poolId: string;
let poolName: string;
let held: string;
let ended: string;
let before: object;
const unknown = '999999999999';
const stranger = '01890000-0000-7000-8000-000000000000';

beforeAll(async () => {
  node = await createNode({
    gpus: [
      { board: 'A100-80GB', count: 2 },
      { board: 'L40S-48GB', count: 1 },
    ],
  });
  const terms = { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.10gb', '3g.40gb'] };
  ({ poolId, poolName } = await createPool(node, { ...terms, gpu_ids: node.gpuIds.slice(0, 1) }));
  tenant = await createTenant('Careless', ['team_owner', 'member']);
  const [first, second] = [
    await tenant.subscribe({ pool_id: poolId, vgpus: 2 }),
    await tenant.subscribe({ pool_id: poolId, vgpus: 1 }),
  ];
  held = first.body.subscription_id;
  ended = second.body.subscription_id;
  await tenant.subscribed(held);
  await tenant.unsubscribe(ended);
  await tenant.subscribed(ended, 'unsubscribed');
  before = await everything();
});

/** All that there is of this GPU service and this team; measured figures change by themselves. */
async function everything(): Promise<object> {
  const read = async (path: string) => (await succeed<{ data: object[] }>('GET', path, { key: adminKey })).data;
  return {
    nodes: await read(`/gpuaas/node?gpuaas_id=${node.gpuaasId}`),
    pools: await read(`/gpuaas/all-pools?gpuaas_id=${node.gpuaasId}`),
    offers: await read(`/gpuaas/available-pools?team_id=${tenant.teamId}&gpuaas_id=${node.gpuaasId}`),
    workloads: await read(`/gpuaas/workload?team_id=${tenant.teamId}&include_ended=true&limit=100`),
    subscriptions: (await read(`/gpuaas/pool-subscription?team_id=${tenant.teamId}&include_ended=true`)).map(
      (found) => ({
        ...found,
        metrics: null,
        metrics_status: null,
      }),
    ),
  };
}

/** What was refused, by its status and the field that it names. */
async function refusal(method: string, path: string, key: string, body?: object): Promise<[number, string]> {
  const answer = await call<Refusal>(method, path, { key, ...(body && { body }) });
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  return [answer.status, answer.body.errors?.[0]?.path ?? ''];
}

const vgpus: Attempt[] = [0, -1, 1.5, 1_000_000_000, 'two', null, Number.MAX_SAFE_INTEGER, [1]].map((wrong) => [
  { vgpus: wrong },
  400,
  'vgpus',
]);

describe('subscribing', () => {
  const attempts: Attempt[] = [
    ...vgpus,
    [{ vgpus: undefined }, 400, 'vgpus'],
    ...[0, -1, 1.5, 'x', '01', '1e3', null, 1e20, {}].map((wrong): Attempt => [{ pool_id: wrong }, 400, 'pool_id']),
    [{ pool_id: unknown }, 404, ''],
    [{ team_id: 'x' }, 400, 'team_id'],
    [{ team_id: stranger }, 404, ''],
    [{ workspace_id: 'default' }, 400, 'workspace_id'],
    [{ workspace_id: stranger }, 404, ''],
    [{ profile: '2g.20gb' }, 400, 'profile'],
    [{ profile: 'mps-2' }, 400, 'profile'],
    [{ profile: '' }, 400, 'profile'],
    [{ name: 'x'.repeat(101) }, 400, 'name'],
    [{ subscription_id: 1 }, 400, 'subscription_id'],
    [{ vgpus: 6 }, 422, ''],
    [{ profile: '3g.40gb', vgpus: 2 }, 422, ''],
  ];
  it.each(attempts)('with %j is a %i', async (wrong, status, named) => {
    const body = { team_id: tenant.teamId, pool_id: poolId, vgpus: 1, ...wrong };
    expect(await refusal('POST', '/gpuaas/pool/subscribe', tenant.key, body)).toEqual([status, named]);
  });

  it('says what would fit, and no more than that', async () => {
    const { body } = await tenant.subscribe({ pool_id: poolId, vgpus: 10_000 });
    const [, small, large] = /Available: (\d+) of 1g\.10gb, or (\d+) of 3g\.40gb\.$/.exec(body.detail) ?? [];
    expect([body.code, small, large]).toEqual(['insufficient_capacity', '5', '1']);
  });
});

describe('what is held', () => {
  it.each([...vgpus, [{ vgpus: 8 }, 422, ''], [{ pool_id: 1, vgpus: 1 }, 400, 'pool_id']] as Attempt[])(
    'changed by %j is a %i',
    async (wrong, status, named) => {
      expect(await refusal('PUT', `/gpuaas/pool-subscription/${held}`, tenant.key, wrong)).toEqual([status, named]);
    },
  );

  it.each([
    [{}, 400, 'subscription_id'],
    [{ subscription_id: 'x' }, 400, 'subscription_id'],
    [{ subscription_id: 0 }, 400, 'subscription_id'],
    [{ subscription_id: unknown }, 404, ''],
    [{ subscription_id: '{held}', force: 'yes' }, 400, 'force'],
    [{ subscription_id: '{held}', team_id: stranger }, 400, 'team_id'],
  ] as Attempt[])('given back by %j is a %i', async (wrong, status, named) => {
    const body = JSON.parse(JSON.stringify(wrong).replace('{held}', held)) as object;
    expect(await refusal('POST', '/gpuaas/pool/unsubscribe', tenant.key, body)).toEqual([status, named]);
  });

  it.each([
    ...vgpus,
    [{ vgpus: 3 }, 422, ''],
    [{ name: '' }, 400, 'name'],
    [{ name: undefined }, 400, 'name'],
    [{ image: 'x' }, 400, 'image'],
  ] as Attempt[])('used by %j is a %i', async (wrong, status, named) => {
    const body = { subscription_id: held, name: 'job', ...wrong };
    expect(await refusal('POST', '/gpuaas/workload', tenant.key, body)).toEqual([status, named]);
  });

  it('must be there, and must not have ended', async () => {
    expect(await refusal('PUT', `/gpuaas/pool-subscription/${unknown}`, tenant.key, { vgpus: 1 })).toEqual([404, '']);
    expect(await refusal('PUT', '/gpuaas/pool-subscription/x', tenant.key, { vgpus: 1 })).toEqual([
      400,
      'subscription_id',
    ]);
    expect(await refusal('PUT', `/gpuaas/pool-subscription/${ended}`, tenant.key, { vgpus: 1 })).toEqual([409, '']);
    expect(await refusal('POST', '/gpuaas/workload', tenant.key, { subscription_id: unknown, name: 'job' })).toEqual([
      404,
      '',
    ]);
    expect(await refusal('POST', '/gpuaas/workload', tenant.key, { subscription_id: ended, name: 'job' })).toEqual([
      409,
      '',
    ]);
    expect(await refusal('DELETE', `/gpuaas/workload/${unknown}`, tenant.key)).toEqual([404, '']);
    expect(await refusal('DELETE', '/gpuaas/workload/0', tenant.key)).toEqual([400, 'workload_id']);
  });
});

describe('a listing', () => {
  it.each([
    ['/gpuaas/pool-subscription?team_id={team}&metric_window=last_2h', 400, 'metric_window'],
    ['/gpuaas/pool-subscription?team_id={team}&metric_window=LAST_24H', 400, 'metric_window'],
    ['/gpuaas/pool-subscription?team_id={team}&metric_window=', 400, 'metric_window'],
    ['/gpuaas/pool-subscription?team_id={team}&include_ended=yes', 400, 'include_ended'],
    ['/gpuaas/pool-subscription?team_id={team}&limit=0', 400, 'limit'],
    ['/gpuaas/pool-subscription?team_id={team}&gpuaas_id=x', 400, 'gpuaas_id'],
    ['/gpuaas/pool-subscription?team_id={team}&gpuaas_id=999999999999', 404, ''],
    ['/gpuaas/pool-subscription?team_id={team}&subscription_id=999999999999', 404, ''],
    ['/gpuaas/pool-subscription?team_id={team}&search=x', 400, 'search'],
    ['/gpuaas/pool-subscription', 400, 'team_id'],
    ['/gpuaas/pool-subscriptions/all?metric_window=last_25h', 400, 'metric_window'],
    ['/gpuaas/pool-subscriptions/all?page=0', 400, 'page'],
    ['/gpuaas/pool-subscriptions/all?limit=101', 400, 'limit'],
    ['/gpuaas/workload?team_id={team}&page=0', 400, 'page'],
    ['/gpuaas/workload?team_id={team}&subscription_id=-1', 400, 'subscription_id'],
    ['/gpuaas/workload?team_id={team}&subscription_id=999999999999', 404, ''],
    ['/gpuaas/available-pools?team_id={team}&gpuaas_id=999999999999', 404, ''],
    ['/gpuaas/available-pools?team_id=x', 400, 'team_id'],
    ['/gpuaas/available-regions', 400, 'team_id'],
    ['/gpuaas/connection-info?team_id={team}&gpuaas_id=999999999999', 404, ''],
    ['/gpuaas/connection-info?team_id=1', 400, 'team_id'],
    ['/gpuaas/compatible-instances/x', 400, 'team_id'],
    ['/gpuaas/all-pools?gpuaas_id=999999999999', 404, ''],
    ['/gpuaas/node?gpuaas_id=999999999999', 404, ''],
    ['/gpuaas/node/999999999999', 404, ''],
    ['/gpuaas/node/x', 400, 'node_id'],
    ['/region?page=1.5', 400, 'page'],
  ])('%s is a %i', async (path, status, named) => {
    expect(await refusal('GET', path.replace('{team}', tenant.teamId), adminKey)).toEqual([status, named]);
  });

  it('is not begun to be refreshed for what is not there', async () => {
    const refresh = (query: string) => refusal('POST', `/gpuaas/refresh-connections${query}`, tenant.key);
    expect(await refresh('')).toEqual([400, 'team_id']);
    expect(await refresh(`?team_id=${tenant.teamId}&gpuaas_id=${unknown}`)).toEqual([404, '']);
  });
});

describe('a pool', () => {
  const attempts: Attempt[] = [
    [{ profiles: ['1g.5gb'] }, 400, 'profiles'],
    [{ profiles: ['1g.10gb', '5g.50gb'] }, 400, 'profiles'],
    [{ profiles: [] }, 400, 'profiles'],
    [{ profiles: undefined }, 400, 'profiles'],
    [{ profiles: ['1g.10gb', '1g.10gb'] }, 400, 'profiles'],
    [{ gpu_ids: ['{L40S}'] }, 400, 'mechanism'],
    [{ gpu_ids: ['{free}', '{L40S}'] }, 400, 'gpu_ids'],
    [{ gpu_ids: ['{pooled}'] }, 409, ''],
    [{ gpu_ids: ['{free}', '{free}'] }, 400, 'gpu_ids'],
    [{ gpu_ids: [] }, 400, 'gpu_ids'],
    [{ gpu_ids: [unknown] }, 400, 'gpu_ids.0'],
    [{ gpuaas_id: unknown }, 404, ''],
    [{ pool_name: '{taken}' }, 409, ''],
    [{ pool_name: '' }, 400, 'pool_name'],
    [{ replicas: 4 }, 400, 'replicas'],
    ...[1, 0, -2, 49, 2.5].map((replicas): Attempt => [
      { mechanism: 'mps', profiles: undefined, replicas },
      400,
      'replicas',
    ]),
    [{ mechanism: 'mps', profiles: undefined }, 400, 'replicas'],
    [{ mechanism: 'mps', replicas: 4 }, 400, 'profiles'],
    [{ mechanism: 'time_slicing', profiles: undefined, replicas: 4 }, 400, 'mechanism'],
    [{ mechanism: 'vgpu' }, 400, 'mechanism'],
    [{ sharing_mode: 'Temporal' }, 400, 'mechanism'],
    [{ sharing_mode: 'Sideways' }, 400, 'sharing_mode'],
    ...[0, -1, 17, 1.5].map((overcommit): Attempt => [{ overcommit }, 400, 'overcommit']),
    [{ temporal_replicas: 12 }, 400, 'temporal_replicas'],
    ...[1, 7, 49].map((temporal_replicas): Attempt => [
      { allow_fallback: true, temporal_replicas },
      400,
      'temporal_replicas',
    ]),
    [
      { sharing_mode: 'Temporal', mechanism: 'time_slicing', profiles: undefined, replicas: 4, allow_fallback: true },
      400,
      'allow_fallback',
    ],
    [{ colour: 'blue' }, 400, 'colour'],
  ];
  it.each(attempts)('with %j is a %i', async (wrong, status, named) => {
    const [pooled = '', free = '', other = ''] = node.gpuIds;
    const asked = {
      gpuaas_id: node.gpuaasId,
      pool_name: fresh('pool'),
      gpu_ids: ['{free}'],
      sharing_mode: 'Spatial',
      mechanism: 'mig',
    };
    const text = JSON.stringify({ ...asked, profiles: ['1g.10gb'], ...wrong })
      .replaceAll('{pooled}', pooled)
      .replaceAll('{free}', free)
      .replaceAll('{L40S}', other)
      .replaceAll('{taken}', poolName);
    expect(await refusal('POST', '/gpuaas/pool/create', adminKey, JSON.parse(text) as object)).toEqual([status, named]);
  });

  it('does not take the GPUs of another GPU service', async () => {
    const elsewhere = await createNode();
    const body = {
      gpuaas_id: node.gpuaasId,
      pool_name: fresh('pool'),
      gpu_ids: elsewhere.gpuIds,
      sharing_mode: 'Spatial',
      mechanism: 'mps',
      replicas: 2,
    };
    expect(await refusal('POST', '/gpuaas/pool/create', adminKey, body)).toEqual([400, 'gpu_ids.0']);
  });
});

describe('the inventory', () => {
  it.each([
    [{ gpus: [{ board: 'A100-90GB', count: 1 }] }, 400, 'gpus.0.board'],
    [
      {
        gpus: [
          { board: 'L4-24GB', count: 1 },
          { board: 'l4-24gb', count: 1 },
        ],
      },
      400,
      'gpus.1.board',
    ],
    ...[0, -1, 17, 1.5].map((count): Attempt => [{ gpus: [{ board: 'L4-24GB', count }] }, 400, 'gpus.0.count']),
    [{ gpus: [] }, 400, 'gpus'],
    [{ gpus: [{ board: 'L4-24GB', count: 1, mig: true }] }, 400, 'gpus.0.mig'],
    [{ node_name: 'gpu 02' }, 400, 'node_name'],
    [{ node_name: 'GPU-02' }, 400, 'node_name'],
    [{ node_name: '-gpu' }, 400, 'node_name'],
    [{ node_name: 'gpu-01' }, 409, ''],
    [{ gpuaas_id: unknown }, 404, ''],
  ] as Attempt[])('of nodes refuses %j by a %i', async (wrong, status, named) => {
    const body = {
      gpuaas_id: node.gpuaasId,
      node_name: fresh('gpu'),
      gpus: [{ board: 'L4-24GB', count: 1 }],
      ...wrong,
    };
    expect(await refusal('POST', '/gpuaas/node', adminKey, body)).toEqual([status, named]);
  });

  it('refuses a command to a node that is not there, or not in a state for it', async () => {
    for (const command of ['initialise', 'reset', 'cordon', 'uncordon']) {
      expect(await refusal('POST', `/gpuaas/node/${unknown}/${command}`, adminKey)).toEqual([404, '']);
    }
    expect(await refusal('POST', `/gpuaas/node/${node.nodeId}/initialise`, adminKey)).toEqual([409, '']);
    expect(await refusal('POST', `/gpuaas/node/${node.nodeId}/reset`, adminKey)).toEqual([409, '']);
  });

  it('of regions and GPU services knows no name twice, and no service without its region', async () => {
    const [region_name, name] = [fresh('region'), fresh('service')];
    const { region_id } = await succeed<{ region_id: string }>('POST', '/region', {
      key: adminKey,
      body: { region_name },
    });
    expect(await refusal('POST', '/region', adminKey, { region_name })).toEqual([409, '']);
    expect(await refusal('POST', '/region', adminKey, { region_name: '' })).toEqual([400, 'region_name']);
    expect(await refusal('POST', '/gpuaas', adminKey, { region_id: unknown, name })).toEqual([404, '']);
    expect(await refusal('POST', '/gpuaas', adminKey, { region_id: 'eu', name })).toEqual([400, 'region_id']);
    await succeed('POST', '/gpuaas', { key: adminKey, body: { region_id, name } });
    expect(await refusal('POST', '/gpuaas', adminKey, { region_id, name })).toEqual([409, '']);
  });
});

describe('after all of that', () => {
  it('everything is as it was', async () => {
    expect(await everything()).toEqual(before);
  });
});
