import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teams } from '@atoll/contracts/teams';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, aTeamPage, teamId } from '../testing/team-fixture.js';

let gateway: GatewayUnderTest;
let key: string;
beforeAll(async () => {
  gateway = await startGateway();
  key = gateway.services.key();
  gateway.services.answer(teams.create, () => aTeam());
  gateway.services.answer(teams.get, () => aTeam());
  gateway.services.answer(teams.update, () => aTeam());
  gateway.services.answer(teams.delete, () => ({}));
  gateway.services.answer(teams.list, () => aTeamPage({ page: 0, limit: 10, total: 0 }));
});
afterAll(() => gateway.close());

/** A 400 that reached no service. Returns the paths of the faulty fields. */
async function faults(method: string, url: string, body?: unknown): Promise<string[]> {
  const before = gateway.services.calls.filter(({ subject }) => !subject.startsWith('teams.credentials')).length;
  const answer = await gateway.call(method, url, { key, body });
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_input']);
  expect(gateway.services.calls.filter(({ subject }) => !subject.startsWith('teams.credentials'))).toHaveLength(before);
  return [...new Set((answer.body.errors ?? []).map(({ path }) => path))];
}

describe('a path', () => {
  it.each([
    '%00',
    '..%2f',
    '..%2f..%2fetc%2fpasswd',
    '__proto__',
    '1',
    'x'.repeat(2000),
    '%F0%9F%92%A9',
    "'%20OR%201=1--",
    `${teamId}%20`,
  ])('with %s for an id is a 400 that names it', async (id) =>
    expect(await faults('GET', `/api/team/${id}`)).toEqual(['team_id']),
  );

  it.each(['/api/team/%zz', '/api/team/%', '/api/team/%ff', '/api/team/%E0%A4%A'])(
    'with malformed encoding is a 400: %s',
    async (url) => {
      expect(await faults('GET', url)).toEqual([]);
    },
  );

  it('is a 414 beyond 8 KiB', async () => {
    for (const url of [`/api/team/${'x'.repeat(9000)}`, `/api/team?page=${'1'.repeat(9000)}`]) {
      const { status, body } = await gateway.call('GET', url, { key });
      expect([status, body.code]).toEqual([414, 'uri_too_long']);
    }
  });

  it('names all faults at once, of path, query and body', async () => {
    const url = `/api/team/x/members/y/api-key?page=1`;
    expect(await faults('POST', url, { grace_seconds: 'soon', api_key: 'mine' })).toEqual([
      'user_id',
      'team_id',
      'page',
      'api_key',
      'grace_seconds',
    ]);
  });
});

describe('a query', () => {
  it.each([
    'page=-1',
    'page=1e3',
    'page=0x10',
    'page=1.0',
    'page=+1',
    'page=%201',
    'page=9223372036854775808',
    'page=',
  ])('%s is a 400', async (query) => {
    expect(await faults('GET', `/api/team?${query}`)).toEqual(['page']);
  });

  it.each(['limit=0', 'limit=101', 'limit=ten', 'limit=NaN', 'limit=1&limit=2', 'limit=1&limit=1'])(
    '%s is a 400',
    async (query) => {
      expect(await faults('GET', `/api/team?${query}`)).toEqual(['limit']);
    },
  );

  it.each(['offset=1', '__proto__=1', 'constructor=1', 'page[]=1', 'page[a]=1', 'hasOwnProperty=1', 'toString=1'])(
    'unknown %s is a 400 that names it',
    async (query) => {
      expect(await faults('GET', `/api/team?${query}`)).toEqual([decodeURIComponent(query).split('=')[0]]);
    },
  );

  it('of a route that takes none is a 400 too', async () => {
    expect(await faults('GET', `/api/team/${teamId}?verbose=true`)).toEqual(['verbose']);
    expect(await faults('GET', '/api/user/profile?id=1')).toEqual(['id']);
  });

  it('with malformed encoding is a 400', async () => expect(await faults('GET', '/api/team?page=%zz')).toEqual(['']));

  it.each(['/api/team', '/api/logs/pods', '/api/gpuaas/connection-info'])(
    'may have an empty search, as forms send it: %s',
    async (path) => expect(await faults('GET', `${path}?limit=x&search=`)).not.toContain('search'),
  );

  it('reaches the service as numbers', async () => {
    await gateway.call('GET', '/api/team?page=3&limit=100', { key });
    expect(gateway.services.callsOf(teams.list).at(-1)?.input).toEqual({ page: 3, limit: 100 });
  });
});

describe('a body', () => {
  it.each<[string, unknown, string[]]>([
    ['nothing', undefined, ['name']],
    ['an empty object', {}, ['name']],
    ['is_suspended', { name: 'x', is_suspended: true }, ['is_suspended']],
    ['id', { name: 'x', id: teamId }, ['id']],
    [
      'a nested unknown field',
      { name: 'x', members: [{ email: 'a@example.com', name: 'A', role: 'member', api_key: 'x' }] },
      ['members.0.api_key'],
    ],
    ['__proto__', '{"name":"x","__proto__":{"is_suspended":true}}', ['__proto__']],
    ['__proto__ in disguise', '{"name":"x","\\u005f_proto__":1}', ['__proto__']],
    ['constructor', '{"name":"x","constructor":{"prototype":{}}}', ['constructor']],
    ['a nested __proto__', '{"name":"x","members":[{"__proto__":1}]}', ['members.0.__proto__']],
    ['NUL', { name: 'a\u0000b' }, ['name']],
    ['a lone surrogate', '{"name":"\\ud800"}', ['name']],
    ['a wrong type', { name: ['x'] }, ['name']],
  ])('of POST /team with %s is a 400 that names the field', async (_name, body, fields) => {
    expect(await faults('POST', '/api/team', body)).toEqual(fields);
  });

  it.each<[string, unknown, string[]]>([
    ['POST /api/gpuaas/pool/subscribe', { team_id: teamId, pool_id: '1', vgpus: '2' }, ['vgpus']],
    ['PUT /api/gpuaas/pool-subscription/1', { vgpus: '2' }, ['vgpus']],
    [
      'POST /api/pods',
      { team_id: teamId, subscription_id: 1, name: 'x', image: 'x', max_duration_minutes: '9' },
      ['max_duration_minutes'],
    ],
    ['POST /api/baremetal/request', { team_id: teamId, name: 'x', specs: { gpu_count: '8' } }, ['specs.gpu_count']],
    [
      'POST /api/gpuaas/node',
      { gpuaas_id: 1, node_name: 'x', gpus: [{ board: 'A100-80GB', count: '1' }] },
      ['gpus.0.count'],
    ],
  ])(
    'of %s with text for a whole number is a 400 that names it, while an id may be text or number',
    async (route, body, fields) => {
      const [method = '', path = ''] = route.split(' ');
      expect(await faults(method, path, body)).toEqual(fields);
    },
  );

  it.each(['{', '[]', '"x"', '7', 'null', 'true', '{"name":"x"}}', "{'name':'x'}", '\u0000'])(
    'that is %j is a 400',
    async (body) => {
      expect(await faults('POST', '/api/team', body)).toEqual([]);
    },
  );

  it.each([
    ['lists', '['.repeat(7000) + ']'.repeat(7000)],
    ['objects', '{"a":'.repeat(7000) + '1' + '}'.repeat(7000)],
  ])('of %s nested 7000 deep is a 400, on any method', async (_what, nested) => {
    for (const [method, url] of [
      ['POST', '/api/team'],
      ['PUT', `/api/team/${teamId}`],
      ['GET', `/api/team/${teamId}`],
      ['DELETE', `/api/team/${teamId}`],
    ] as const) {
      expect(await faults(method, url, `{"name":${nested}}`)).toHaveLength(1);
    }
  });

  it.each([
    ['a stray continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a character cut off', [0xf0, 0x9f, 0x92]],
  ])('with %s is no UTF-8, a 400', async (_what, bytes) => {
    const body = Buffer.concat([Buffer.from('{"name":"x'), Buffer.from(bytes), Buffer.from('"}')]);
    expect(await faults('POST', '/api/team', body)).toEqual([]);
  });

  it('of a route that takes none is a 400 for its fields, on GET too, and fine when empty', async () => {
    expect(await faults('POST', `/api/team/${teamId}/suspend`, { force: true })).toEqual(['force']);
    expect(await faults('GET', `/api/team/${teamId}`, { team_id: teamId })).toEqual(['team_id']);
    expect(await faults('DELETE', `/api/team/${teamId}`, { force: true })).toEqual(['force']);
    expect((await gateway.call('GET', `/api/team/${teamId}`, { key, body: {} })).status).toBe(200);
  });

  it('does not reach over the path: a field of the path is unknown in the body', async () => {
    expect(await faults('PUT', `/api/team/${teamId}`, { team_id: '01890000-0000-7000-8000-000000000000' })).toEqual([
      'team_id',
    ]);
  });

  it('over 64 KiB is a 413, by its announced length and by what came', async () => {
    const body = { name: 'x', description: 'x'.repeat(65_536) };
    const { status, body: problem } = await gateway.call('POST', '/api/team', { key, body });
    expect([status, problem.code]).toEqual([413, 'payload_too_large']);
  });

  it.each([
    'application/xml',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'application/json; charset=iso-8859-1',
    'application/json; a=b; Charset = "UTF-16"',
    'nonsense',
    '',
  ])('as %j is a 415', async (type) => {
    const { status, body } = await gateway.call('POST', '/api/team', {
      key,
      body: '{"name":"x"}',
      headers: { 'content-type': type },
    });
    expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
  });

  it.each(['application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'Application/JSON; a=b'])(
    'as %j is taken',
    async (type) => {
      const { status } = await gateway.call('POST', '/api/team', {
        key,
        body: '{"name":"ü"}',
        headers: { 'content-type': type },
      });
      expect(status).toBe(201);
    },
  );

  it('compressed is a 415', async () => {
    const { status } = await gateway.call('POST', '/api/team', {
      key,
      body: '{"name":"x"}',
      headers: { 'content-encoding': 'gzip' },
    });
    expect(status).toBe(415);
  });

  it.each(['application/json', 'application/json; charset=latin1', 'text/plain', 'nonsense'])(
    'that is not there makes its type %j irrelevant, on any method',
    async (type) => {
      const headers = { 'content-type': type };
      expect((await gateway.call('GET', `/api/team/${teamId}`, { key, headers })).status).toBe(200);
      expect((await gateway.call('DELETE', `/api/team/${teamId}`, { key, headers })).status).toBe(204);
      expect((await gateway.call('PUT', `/api/team/${teamId}`, { key, headers })).status).toBe(200);
      expect((await gateway.call('POST', '/api/team', { key, headers })).status).toBe(400);
    },
  );
});
