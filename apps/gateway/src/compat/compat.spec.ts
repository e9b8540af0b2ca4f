import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamBatches, teams, workspaces } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { operationsOf } from '../openapi/operations.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from './testing/compat-fixture.js';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  key = compat.gateway.services.key();
  compat.gateway.services.answer(teams.get, () => aTeam());
  compat.gateway.services.answer(teams.update, () => aTeam());
  compat.gateway.services.answer(teams.suspend, () => aTeam({ is_suspended: true }));
});
afterAll(() => compat.close());

const path = `/api/team/${teamId}`;

describe('who may come in', () => {
  it('is decided as on the main API, by the same cache of credentials', async () => {
    const { services } = compat.gateway;
    const fresh = services.key();
    expect((await compat.gateway.call('GET', path, { key: fresh })).status).toBe(200);
    const lookUps = services.calls.length;
    expect((await compat.call('GET', path, { headers: { 'X-API-Key': fresh } })).status).toBe(200);
    expect(services.calls.length - lookUps).toBe(1);
    services.revoke(fresh);
    services.broadcastChange('01890000-0000-7000-8000-00000000000b');
    expect(await compat.call('GET', path, { key: fresh })).toMatchObject({
      status: 401,
      body: { code: 401, errors: [] },
    });
  });

  it.each([undefined, 'atl_nonsense'])('nobody with the key %s', async (wrong) => {
    const answer = await compat.call('GET', path, wrong === undefined ? {} : { key: wrong });
    expect(answer).toMatchObject({ status: 401, body: { code: 401, message: expect.any(String), errors: [] } });
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  it('calls of one team take turns with those of the main API', async () => {
    const limited = await startCompat({ limits: {}, deadlineMs: 600_000 });
    const { services } = limited.gateway;
    const asked: (() => void)[] = [];
    services.answer(teams.get, async () => {
      await new Promise<void>((resolve) => asked.push(resolve));
      return aTeam();
    });
    const member = services.key({
      scope: 'membership',
      teams: [{ team_id: teamId, role: 'viewer', lacks_second_factor: false }],
    });
    const calls = [1, 2, 3, 4, 5, 6].flatMap(() =>
      [limited, limited.gateway].map((mount) => mount.call('GET', path, { key: member })),
    );
    const until = async (count: number) => {
      while (asked.length < count) await new Promise((resolve) => setImmediate(resolve));
    };
    await until(6);
    // Time for a seventh, were there one.
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toHaveLength(6);
    asked.forEach((answer) => answer());
    await until(12);
    asked.forEach((answer) => answer());
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(12).fill(200));
    await limited.close();
  });

  it('one old call takes one token, from the bucket of the main API', async () => {
    const limited = await startCompat({ limits: { key: { count: 3, seconds: 60 } } });
    const { services } = limited.gateway;
    const owner = services.key();
    services.answer(teams.update, () => aTeam());
    services.answer(workspaces.list, () => ({ data: [], pagination: { page: 0, limit: 100, total: 250 } }));
    services.answer(teams.get, () => aTeam());
    expect((await limited.call('GET', `/api/workspace?teamId=${teamId}&itemsPerPage=300`, { key: owner })).status).toBe(
      200,
    );
    expect(services.callsOf(workspaces.list).length).toBeGreaterThan(1);
    expect((await limited.call('GET', path, { key: owner })).headers.ratelimit).toMatch(/r=1;/);
    expect((await limited.gateway.call('GET', path, { key: owner })).status).toBe(200);
    const refused = await limited.call('GET', path, { key: owner });
    expect(refused).toMatchObject({
      status: 429,
      body: { code: 429, message: 'Too many requests. Please try again later.' },
    });
    expect(refused.headers['retry-after']).toBeDefined();
    await limited.close();
  });
});

describe('what comes with a call', () => {
  it.each(['""', '[]', '17', 'nonsense {', '{"team_id":1}'])(
    'is ignored where the call takes no body: %s',
    async (body) => {
      for (const type of ['application/json', 'text/plain', ';;;']) {
        const headers = { 'content-type': type };
        expect((await compat.call('POST', `${path}/suspend`, { key, body, headers })).status).toBe(200);
        expect((await compat.call('GET', path, { key, body, headers })).status).toBe(200);
      }
    },
  );

  it('may have fields and parameters that nobody knows', async () => {
    const body = { name: 'New', colour: 'red', general: { nested: [1], constructor: 1 }, ['__proto__']: 1 };
    expect((await compat.call('PUT', `${path}?a=1&a=2&team_id[eqstr]=3`, { key, body })).status).toBe(200);
    expect(compat.gateway.services.callsOf(teams.update).at(-1)?.input).toEqual({ team_id: teamId, name: 'New' });
  });

  it.each(['""', '[]', '17', 'null', 'nonsense {', '{"name":7}', '{"name":" "}'])(
    'is refused where the call takes another: %s',
    async (body) => {
      const answer = await compat.call('PUT', path, { key, body });
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 400, errors: [{ field: expect.any(String), message: expect.any(String) }] },
      });
    },
  );

  it.each(['1', 'x', '0199f3c2', '%00', '1e3'])('is refused where an id has no form of one: %s', async (id) => {
    expect(await compat.call('GET', `/api/team/${id}`, { key })).toMatchObject({
      status: 400,
      body: { errors: [{ field: 'team_id' }] },
    });
  });

  it.each(['page=-1', 'page=1e3', 'page=x', 'itemsPerPage=0', 'page=1&page=2', 'page=%ff', 'search=%'])(
    'is refused in a query: %s',
    async (query) => {
      expect((await compat.call('GET', `${path}/members?${query}`, { key })).status).toBe(400);
    },
  );
});

describe('what goes wrong', () => {
  it.each([
    ['not_found', 404],
    ['forbidden', 403],
    ['team_suspended', 403],
    ['conflict', 409],
    ['unavailable', 503],
    ['deadline_exceeded', 504],
    ['internal', 500],
  ] as const)('%s is %i, with the status as its code', async (code, status) => {
    compat.gateway.services.answer(teams.unsuspend, () => {
      throw new AppError(code, 'In words.');
    });
    const answer = await compat.call('POST', `${path}/unsuspend`, { key });
    expect(answer).toMatchObject({ status, body: { code: status, message: 'In words.', errors: [] } });
  });

  it('for want of capacity is said in the words that clients look for', async () => {
    compat.gateway.services.answer(teams.unsuspend, () => {
      throw new AppError('insufficient_capacity', '2 vGPUs are free.');
    });
    const answer = await compat.call('POST', `${path}/unsuspend`, { key });
    expect(answer).toMatchObject({
      status: 422,
      body: { code: 422, message: 'Insufficient resources: 2 vGPUs are free.' },
    });
  });

  it('a call that is not served is 501 with an alternative, and no missing object', async () => {
    for (const [method, url] of [
      ['GET', '/api/catalogue/items'],
      ['POST', '/api/gpuaas/pool/never'],
      ['GET', '/api/instances/unified/never/again'],
      ['DELETE', '/api/nothing'],
      ['GET', '/api/instances/unified/'],
      ['GET', '/api/team/'],
      ['GET', '/api/team//members'],
      ['DELETE', '/api/pods/delete-exposed-service/'],
    ] as const) {
      const answer = await compat.call(method, url, { key });
      expect(answer).toMatchObject({
        status: 501,
        body: { code: 501, message: expect.stringMatching(/main API/), errors: [] },
      });
    }
    expect((await compat.call('GET', '/api/catalogue/items')).status).toBe(401);
  });

  it('before there is a request has the form of the mount too', async () => {
    const mount = await startCompat();
    await mount.app.listen(0, '127.0.0.1');
    const response = await fetch(`${await mount.app.getUrl()}${path}`, { headers: { 'x-long': 'a'.repeat(20_000) } });
    expect([response.status, response.headers.get('content-type')]).toEqual([431, 'application/json; charset=utf-8']);
    expect(await response.json()).toEqual({ code: 431, message: expect.stringContaining('16 KiB'), errors: [] });
    await mount.close();
  });

  it('a method that a path does not take is 405', async () => {
    const answer = await compat.call('DELETE', '/api/roles', { key });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});

describe('the OpenAPI document of the mount', () => {
  it('lists its calls alone, each with a summary and a success of 200 in JSON', () => {
    expect(Object.keys(compat.document.paths)).toContain('/api/team/{team_id}/invite');
    for (const [at, item] of Object.entries(compat.document.paths)) {
      for (const [method, operation] of Object.entries(item) as [
        string,
        { summary?: string; responses: Record<string, unknown> },
      ][]) {
        expect([at, method, operation.summary]).toEqual([at, method, expect.stringMatching(/^[A-Z]/)]);
        const successes = Object.entries(operation.responses).filter(([status]) => status < '300');
        expect([at, successes]).toEqual([
          at,
          [[expect.stringMatching(/^20[01]$/), { description: expect.any(String), content: expect.anything() }]],
        ]);
      }
    }
  });

  it('has one schema for each name: no list of words is called as the body that it stands in', () => {
    for (const [name, schema] of Object.entries(compat.document.components?.schemas ?? {})) {
      expect([name, JSON.stringify(schema)]).toEqual([
        name,
        expect.not.stringContaining(`"#/components/schemas/${name}"`),
      ]);
    }
  });

  it('takes what the calls take: roles by id, types as they are shown, ids as numbers, and keys', async () => {
    const { schemas = {}, parameters } = compat.document.components ?? {};
    const fieldOf = (schema: string, name: string) =>
      (schemas[schema] as { properties?: Record<string, object> }).properties?.[name];
    expect(fieldOf('RoleChange', 'role_id')).toMatchObject({
      type: 'string',
      examples: expect.arrayContaining(['team_member']),
    });
    expect(fieldOf('OldExpose', 'service_type')).toMatchObject({
      type: 'string',
      examples: expect.arrayContaining(['NodePort']),
    });
    expect(fieldOf('OldExpose', 'pool_subscription_id')).toMatchObject({ $ref: '#/components/schemas/NumericId' });
    expect(fieldOf('PoolQuestion', 'duration_hours')).toMatchObject({
      oneOf: [{ type: 'number' }, { type: 'string' }],
    });
    expect(schemas.NumericId).toMatchObject({ type: ['string', 'integer'] });
    expect(Object.keys(parameters ?? {})).toEqual(['IdempotencyKey']);
    const takesKey = operationsOf(compat.document).filter(({ operation }) =>
      JSON.stringify(operation.parameters).includes('/IdempotencyKey'),
    );
    const posts = operationsOf(compat.document).filter(
      ({ method, path: at }) => method === 'post' && at !== '/api/create-otl',
    );
    expect(takesKey).toEqual(posts);
    expect(JSON.stringify(compat.document)).not.toContain('x-unkept');
    const wrong = await compat.call('POST', `${path}/member/${teamId}/role`, { key, body: { role_id: 'king' } });
    expect(wrong).toMatchObject({ status: 400, body: { message: expect.stringContaining('read_only_member') } });
  });

  it('is no part of the main one', async () => {
    const { body } = await compat.gateway.call<{ paths: object }>('GET', '/api/openapi.json');
    expect(Object.keys(body.paths)).not.toContain('/api/roles');
    expect(await compat.gateway.call('GET', '/api/roles', { key })).toMatchObject({ status: 404 });
  });
});

describe('a mount that is closed', () => {
  it('leaves the gateway as it is', async () => {
    const other = await startCompat();
    await other.app.close();
    other.gateway.services.answer(teamBatches.names, () => ({ teams: [] }));
    other.gateway.services.answer(teams.get, () => aTeam());
    const live = other.gateway.services.key();
    expect((await other.gateway.call('GET', path, { key: live })).status).toBe(200);
    other.gateway.services.revoke(live);
    other.gateway.services.broadcastChange('01890000-0000-7000-8000-00000000000b');
    expect((await other.gateway.call('GET', path, { key: live })).status).toBe(401);
    await other.gateway.close();
  });
});
