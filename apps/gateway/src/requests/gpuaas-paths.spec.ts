import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type Operation } from '@atoll/contracts';
import { connections, nodes, pools, subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { teamId } from '../testing/team-fixture.js';

let gateway: GatewayUnderTest;
let key: string;
let asked: { subject: string; input: object }[];
let answered: object;
beforeAll(async () => {
  gateway = await startGateway();
  key = gateway.services.key();
  for (const operation of [connections, nodes, pools, subscriptions, workloads].flatMap((contract) =>
    Object.values<Operation>(contract),
  )) {
    gateway.services.answer(operation, (input) => {
      asked.push({ subject: operation.subject, input });
      return answered;
    });
  }
});
beforeEach(() => {
  asked = [];
  answered = {};
});
afterAll(() => gateway.close());

const pool = {
  gpuaas_id: 1,
  pool_name: 'a100',
  gpu_ids: [1, '2'],
  sharing_mode: 'Spatial',
  mechanism: 'mps',
  replicas: 4,
};
const subscribe = { team_id: teamId, pool_id: 3, vgpus: 2 };

/** A 400 that reached no service. Returns the paths of the faulty fields. */
async function faults(method: string, path: string, body?: unknown): Promise<string[]> {
  const answer = await gateway.call(method, `/api/gpuaas${path}`, { key, body });
  expect([answer.status, answer.body.code, asked]).toEqual([400, 'invalid_input', []]);
  return (answer.body.errors ?? []).map(({ path: field }) => field);
}

describe('a removed path', () => {
  it.each([
    '/api/gpuaas/7/pool-subscription',
    '/api/gpuaas/7/connection-info',
    '/api/gpuaas/node/pool-subscription',
    '/api/gpuaas/node/connection-info?team_id=x',
    '/api/gpuaas/workload/connection-info',
    '/api/gpuaas/compatible-instances/pool-subscription',
    '/api/gpuaas/pool-subscription/pool-subscription',
    '/api/gpuaas/pool-subscriptions/connection-info',
  ])('is a 410 that names its replacement, whatever routes stand beside it: %s', async (path) => {
    for (const method of ['GET', 'HEAD']) expect((await gateway.call(method, path, { key })).status).toBe(410);
    const { body } = await gateway.call('GET', path, { key });
    const [, name = ''] = /(pool-subscription|connection-info)(?:\?|$)/.exec(path) ?? [];
    expect([body.code, body.detail]).toEqual(['gone', expect.stringContaining(`GET /api/gpuaas/${name} with`)]);
    expect(asked).toEqual([]);
  });

  it('is so however it is spelt, and for every method that no route takes', async () => {
    const call = async (method: string, path: string) => (await gateway.call(method, path, { key })).status;
    expect(await call('GET', '/api/gpuaas/7/pool%2dsubscription')).toBe(410);
    expect(await call('GET', '/api/logs/%70ods/7')).toBe(410);
    expect(await call('GET', '/api/logs/pods%2f7')).toBe(404);
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      for (const path of ['/api/gpuaas/7/pool-subscription', '/api/gpuaas/node/connection-info', '/api/logs/pods/7']) {
        expect([method, path, await call(method, path)]).toEqual([method, path, 410]);
      }
    }
    expect(asked).toEqual([]);
  });

  it('is so for reading alone: a subscription is changed at a path that looks like one', async () => {
    expect(await faults('PUT', '/pool-subscription/connection-info', { vgpus: 3 })).toEqual(['subscription_id']);
    expect((await gateway.call('PUT', '/api/gpuaas/pool-subscription/42', { key, body: { vgpus: 3 } })).status).toBe(
      202,
    );
    expect(asked).toEqual([{ subject: subscriptions.resize.subject, input: { subscription_id: '42', vgpus: 3 } }]);
    const { status, headers } = await gateway.call('GET', '/api/gpuaas/pool-subscription/42', { key });
    expect([status, headers.allow]).toEqual([405, 'PUT']);
  });
});

describe('a POST that has no body', () => {
  const headers = { 'content-type': 'application/json', 'content-length': '0' };

  it.each(['initialise', 'reset', 'cordon', 'uncordon'] as const)(
    'of %s is taken, with a content type and without',
    async (command) => {
      for (const options of [{}, { headers }, { body: {} }]) {
        const { status } = await gateway.call('POST', `/api/gpuaas/node/7/${command}`, { key, ...options });
        expect(status).toBe(command === 'initialise' || command === 'reset' ? 202 : 200);
        expect(asked.pop()).toEqual({ subject: nodes[command].subject, input: { node_id: '7' } });
      }
      expect(await faults('POST', `/node/7/${command}`, { force: true })).toEqual(['force']);
    },
  );

  it('refreshes connections by its query', async () => {
    for (const options of [{}, { headers }, { body: {} }]) {
      const path = `/api/gpuaas/refresh-connections?team_id=${teamId.toUpperCase()}&gpuaas_id=1`;
      expect((await gateway.call('POST', path, { key, ...options })).status).toBe(202);
      expect(asked.pop()).toEqual({ subject: connections.refresh.subject, input: { team_id: teamId, gpuaas_id: '1' } });
    }
    expect(await faults('POST', '/refresh-connections')).toEqual(['team_id']);
    expect(await faults('POST', '/refresh-connections', { team_id: teamId })).toEqual(['team_id', 'team_id']);
    expect(await faults('POST', `/refresh-connections?team_id=${teamId}&gpuaas_id=all&search=x`)).toEqual([
      'search',
      'gpuaas_id',
    ]);
  });

  it('is another request with another query, under one idempotency key', async () => {
    const fingerprints = [];
    for (const id of ['1', '2', '1']) {
      const path = `/api/gpuaas/refresh-connections?team_id=${teamId}&gpuaas_id=${id}`;
      await gateway.call('POST', path, { key, headers: { 'idempotency-key': 'again' } });
      fingerprints.push(gateway.services.contextOf(connections.refresh).idempotency?.fingerprint);
    }
    expect(new Set(fingerprints).size).toBe(2);
  });
});

describe('a pool', () => {
  const create = (body: object) => gateway.call('POST', '/api/gpuaas/pool/create', { key, body });

  /** What the document says of the sharing mode, in requests and in answers. */
  const documented = async () => {
    const { body } = await gateway.call<OpenAPIObject>('GET', '/api/openapi.json');
    const schemas = body.components?.schemas as Record<string, { properties: Record<string, object> }>;
    const sent = schemas.CreatePool?.properties.sharing_mode;
    const { pattern = '' } = sent as { pattern?: string };
    return { sent, pattern: new RegExp(pattern), shown: schemas.Pool?.properties.sharing_mode };
  };

  it.each([
    ['Spatial', 'Spatial'],
    ['spatial', 'Spatial'],
    ['TEMPORAL', 'Temporal'],
    ['temporal', 'Temporal'],
    ['sPATIAL', 'Spatial'],
  ])('of the sharing mode %s is made as %s, as the document says', async (sharing_mode, kept) => {
    const { sent, pattern, shown } = await documented();
    expect(sent).toMatchObject({ type: 'string' });
    expect(pattern.test(sharing_mode)).toBe(true);
    expect((await create({ ...pool, sharing_mode })).status).toBe(201);
    expect(asked).toMatchObject([{ subject: pools.create.subject, input: { sharing_mode: kept } }]);
    expect(shown).toMatchObject({ $ref: '#/components/schemas/SharingMode' });
  });

  it.each(['Spacial', 'Spatial ', 'SpatialTemporal', ''])(
    'of the sharing mode "%s" is refused, as the document says',
    async (sharing_mode) => {
      expect((await documented()).pattern.test(sharing_mode)).toBe(false);
      expect(await faults('POST', '/pool/create', { ...pool, sharing_mode })).toEqual(['sharing_mode']);
    },
  );

  it('may name ids as numbers or as digits: the service reads digits', async () => {
    await create(pool);
    expect(asked).toEqual([{ subject: pools.create.subject, input: { ...pool, gpuaas_id: '1', gpu_ids: ['1', '2'] } }]);
  });

  it.each<[object, string]>([
    [{ sharing_mode: 'Spacial' }, 'sharing_mode'],
    [{ sharing_mode: null }, 'sharing_mode'],
    [{ mechanism: 'MIG' }, 'mechanism'],
    [{ replicas: 1 }, 'replicas'],
    [{ replicas: 49 }, 'replicas'],
    [{ replicas: 2.5 }, 'replicas'],
    [{ temporal_replicas: 1 }, 'temporal_replicas'],
    [{ temporal_replicas: 49 }, 'temporal_replicas'],
    [{ overcommit: 0 }, 'overcommit'],
    [{ allow_fallback: 'yes' }, 'allow_fallback'],
    [{ profiles: [] }, 'profiles'],
    [{ profiles: ['1g.10gb', '1g.10gb'] }, 'profiles'],
    [{ gpuaas_id: 0 }, 'gpuaas_id'],
    [{ gpu_ids: [] }, 'gpu_ids'],
    [{ gpu_ids: [1, '1'] }, 'gpu_ids'],
    [{ gpu_ids: ['01'] }, 'gpu_ids'],
    [{ gpu_ids: [-1] }, 'gpu_ids'],
    [{ gpu_ids: '1' }, 'gpu_ids'],
    [{ pool_id: '1' }, 'pool_id'],
    [{ board: 'A100-80GB' }, 'board'],
  ])('with %j is a 400 that names the field', async (fault, field) => {
    expect(await faults('POST', '/pool/create', { ...pool, ...fault })).toEqual([field]);
  });
});

describe('vgpus', () => {
  it.each([0, -1, 1.5, 1e9, 10_001, null, true, 'two', '1e3', [1]])(
    'of %j are a 400, wherever they are asked for',
    async (vgpus) => {
      expect(await faults('POST', '/pool/subscribe', { ...subscribe, vgpus })).toEqual(['vgpus']);
      expect(await faults('PUT', '/pool-subscription/42', { vgpus })).toEqual(['vgpus']);
      expect(await faults('POST', '/workload', { subscription_id: 42, name: 'x', vgpus })).toEqual(['vgpus']);
    },
  );

  it('may be left out of a workload alone', async () => {
    expect(await faults('POST', '/pool/subscribe', { ...subscribe, vgpus: undefined })).toEqual(['vgpus']);
    expect(await faults('PUT', '/pool-subscription/42')).toEqual(['vgpus']);
    expect(
      (await gateway.call('POST', '/api/gpuaas/workload', { key, body: { subscription_id: 42, name: 'x' } })).status,
    ).toBe(202);
  });
});

describe('an id that counts', () => {
  it.each(['0', '-1', '1.5', '1e3', '01', '+1', '%201', 'x', teamId, '1234567890123456'])(
    'is not %s, in no place',
    async (id) => {
      expect(await faults('GET', `/node/${id}`)).toEqual(['node_id']);
      expect(await faults('POST', `/node/${id}/reset`)).toEqual(['node_id']);
      expect(await faults('PUT', `/pool-subscription/${id}`, { vgpus: 1 })).toEqual(['subscription_id']);
      expect(await faults('DELETE', `/workload/${id}`)).toEqual(['workload_id']);
      expect(await faults('GET', `/pool-subscription?team_id=${teamId}&gpuaas_id=${id.replace('+', '%2B')}`)).toEqual([
        'gpuaas_id',
      ]);
      expect(await faults('POST', '/pool/unsubscribe', { subscription_id: decodeURIComponent(id) })).toEqual([
        'subscription_id',
      ]);
    },
  );

  it.each([7, '7'])('is %j in a body, and digits for the service', async (id) => {
    await gateway.call('POST', '/api/gpuaas/pool/subscribe', { key, body: { ...subscribe, pool_id: id } });
    await gateway.call('POST', '/api/gpuaas/pool/unsubscribe', { key, body: { subscription_id: id } });
    await gateway.call('POST', '/api/gpuaas/workload', { key, body: { subscription_id: id, name: 'x' } });
    expect(asked.map(({ input }) => input)).toEqual([
      { ...subscribe, pool_id: '7' },
      { subscription_id: '7' },
      { subscription_id: '7', name: 'x' },
    ]);
  });
});

describe('an unknown field', () => {
  it.each([
    [
      'POST',
      '/node',
      { gpuaas_id: 1, node_name: 'a', gpus: [{ board: 'L4-24GB', count: 1, price: 1 }] },
      'gpus.0.price',
    ],
    ['POST', '/pool/subscribe', { ...subscribe, gpuaas_id: 1 }, 'gpuaas_id'],
    ['POST', '/pool/unsubscribe', { subscription_id: 42, team_id: teamId }, 'team_id'],
    ['PUT', '/pool-subscription/42', { vgpus: 1, subscription_id: 43 }, 'subscription_id'],
    ['POST', '/workload', { subscription_id: 42, name: 'x', team_id: teamId }, 'team_id'],
    ['DELETE', '/workload/9', { force: true }, 'force'],
    ['GET', `/pool-subscriptions/all?team_id=${teamId}`, undefined, 'team_id'],
    ['GET', `/compatible-instances/${teamId}?gpuaas_id=1`, undefined, 'gpuaas_id'],
    ['GET', `/available-regions?team_id=${teamId}&region_id=1`, undefined, 'region_id'],
  ])('of %s %s is a 400 that names it: %j', async (method, path, body, field) => {
    expect(await faults(method, path, body)).toEqual([field]);
  });
});

describe('a listing of subscriptions', () => {
  const paths = ['/pool-subscriptions/all?', `/pool-subscription?team_id=${teamId}&`];

  it.each(['last_1h', 'last_6h', 'last_24h', 'last_7d', 'last_30d'])('takes the window %s', async (metric_window) => {
    for (const path of paths) await gateway.call('GET', `/api/gpuaas${path}metric_window=${metric_window}`, { key });
    expect(asked.map(({ input }) => input)).toEqual([{ metric_window }, { team_id: teamId, metric_window }]);
  });

  it.each(['last_2h', 'LAST_24H', '24h', '', 'last_24h%20'])('refuses the window "%s"', async (metric_window) => {
    for (const path of paths)
      expect(await faults('GET', `${path}metric_window=${metric_window}`)).toEqual(['metric_window']);
  });

  it('counts pages from 1', async () => {
    for (const path of paths) expect(await faults('GET', `${path}page=0&limit=101`)).toEqual(['page', 'limit']);
  });

  it('has links where it has pages, and none where it is given whole', async () => {
    const linkOf = async (path: string) => (await gateway.call('GET', `/api/gpuaas${path}`, { key })).headers.link;
    answered = { data: [], pagination: { page: 1, limit: 250, total: 250 } };
    expect(await linkOf(`/pool-subscription?team_id=${teamId}`)).toBeUndefined();
    expect(await linkOf(`/connection-info?team_id=${teamId}&page=1`)).toBeUndefined();
    answered = { data: [], pagination: { page: 1, limit: 100, total: 250 } };
    for (const path of [
      '/pool-subscriptions/all?',
      `/pool-subscription?team_id=${teamId}&`,
      `/connection-info?team_id=${teamId}&`,
    ]) {
      expect(await linkOf(`${path}limit=100`)).toContain(`</api/gpuaas${path}limit=100&page=2>; rel="next"`);
    }
  });
});
