import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, platformUrl, query, type Answer } from './client.js';

type Problem = {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  request_id: string;
  message: string;
  statusCode: number;
  errors?: { path: string; code: string; message: string }[];
};

/** Every refusal, from whichever layer, has this one form. */
function expectProblem(answer: Answer<Problem>, status: number, code: string): Problem {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  expect(answer.body).toMatchObject({ status, statusCode: status, message: answer.body.detail });
  expect(answer.body.type).toMatch(new RegExp(`/api/docs/errors#${code}$`));
  expect(answer.body.title.length).toBeGreaterThan(0);
  expect(answer.body.instance).not.toContain('?');
  expect(answer.body.request_id).toBe(answer.headers['x-request-id']);
  return answer.body;
}

let team = '';
let key = '';
beforeAll(async () => {
  const created = await createTeam('Bad input');
  team = created.team.id;
  key = created.keys.team_owner ?? '';
});

describe('bad credentials are 401, before anything else is looked at', () => {
  const attempts: [string, Record<string, string | string[]>][] = [
    ['none', {}],
    ['an empty Authorization', { authorization: '' }],
    ['an empty Bearer', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: 'Basic YTpi' }],
    ['a wrong checksum', { authorization: `Bearer atl_${'a'.repeat(38)}` }],
    ['8 KB of key', { authorization: `Bearer atl_${'a'.repeat(8192)}` }],
    ['an empty x-api-key', { 'x-api-key': '' }],
    ['something like a JWT', { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.' }],
  ];

  it.each(attempts)('%s', async (_name, headers) => {
    for (const path of [`/team/${team}`, '/nowhere', '/gpuaas/1/connection-info', '/team/%zz']) {
      const answer = await call<Problem>('GET', path, { headers });
      expectProblem(answer, 401, 'unauthenticated');
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    }
    expectProblem(
      await call<Problem>('POST', '/team', { headers: { ...headers, 'content-type': 'application/json' }, raw: '{' }),
      401,
      'unauthenticated',
    );
  });

  it('two different ones, in two headers or in one header twice', async () => {
    const other = (await createTeam('Other')).keys.team_owner ?? '';
    expectProblem(
      await call<Problem>('GET', `/team/${team}`, { key, headers: { 'x-api-key': other } }),
      401,
      'unauthenticated',
    );
    expectProblem(
      await call<Problem>('GET', `/team/${team}`, { headers: { 'x-api-key': [key, other] } }),
      401,
      'unauthenticated',
    );
    expect((await call('GET', `/team/${team}`, { headers: { 'x-api-key': [key, key] } })).status).toBe(200);
  });

  it('one in the query string is not read', async () => {
    expectProblem(await call<Problem>('GET', `/team/${team}?api_key=${key}`), 401, 'unauthenticated');
    expectProblem(await call<Problem>('GET', `/team/${team}?access_token=${key}`), 401, 'unauthenticated');
  });

  it('1 MB of header is refused at the door', async () => {
    const answer = await call<Problem>('GET', `/team/${team}`, {
      headers: { authorization: `Bearer ${'a'.repeat(1_000_000)}` },
    }).catch(() => null);
    if (answer) expect([400, 401, 431]).toContain(answer.status);
    expect((await fetch(`${platformUrl}/livez`)).status).toBe(200);
  });
});

describe('bad paths and queries', () => {
  it.each([
    '/team/%zz',
    '/team/%00',
    '/team/..%2f',
    '/team/..%2f..%2fetc%2fpasswd',
    '/team/__proto__',
    '/team/1',
    '/team/%F0%9F%92%A9',
    "/team/'%20OR%201=1--",
  ])('GET %s is a 400', async (path) => {
    expectProblem(await call<Problem>('GET', path, { key }), 400, 'invalid_input');
  });

  it.each([
    'page=-1',
    'page=1e3',
    'page=9223372036854775808',
    'page=',
    'limit=0',
    'limit=101',
    'limit=ten',
    'page=1&page=2',
    'page[]=1',
    'offset=3',
    '__proto__=1',
    'constructor=1',
  ])('GET /team?%s is a 400 that names the parameter and what is allowed', async (query) => {
    const problem = expectProblem(await call<Problem>('GET', `/team?${query}`, { key }), 400, 'invalid_input');
    const name = decodeURIComponent(query).split(/[=[]/)[0] ?? '';
    expect(problem.errors?.map(({ path }) => path).join()).toContain(name);
  });

  it('a page past the end is 200 and empty', async () => {
    const { status, body } = await call<{ data: object[] }>('GET', '/team?page=1000', { key });
    expect([status, body.data]).toEqual([200, []]);
  });

  it('an unknown path is a 404, a known one under a wrong method a 405 with Allow', async () => {
    expectProblem(await call<Problem>('GET', '/teams', { key }), 404, 'not_found');
    const answer = await call<Problem>('PATCH', `/team/${team}`, { key });
    expectProblem(answer, 405, 'method_not_allowed');
    expect(String(answer.headers.allow).split(', ').sort()).toEqual(['DELETE', 'GET', 'HEAD', 'PUT']);
  });

  it.each([
    ['/gpuaas/7/pool-subscription', '/api/gpuaas/pool-subscription'],
    ['/gpuaas/7/connection-info', '/api/gpuaas/connection-info'],
    ['/logs/pods/7', '/api/logs/pods'],
  ])('the removed %s is a 410 that names its replacement', async (path, replacement) => {
    expect(expectProblem(await call<Problem>('GET', path, { key }), 410, 'gone').detail).toContain(replacement);
  });
});

describe('bad bodies', () => {
  const unwanted = 'Never written';
  const tooLong = 'x'.repeat(101);
  const bodies: [string, unknown, string][] = [
    ['nothing', undefined, 'name'],
    ['no name', { description: 'x' }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a long name', { name: tooLong }, 'name'],
    ['a number for a name', { name: 7 }, 'name'],
    ['a NUL in the name', { name: 'a\u0000b' }, 'name'],
    ['is_suspended', { name: unwanted, is_suspended: false }, 'is_suspended'],
    ['id', { name: unwanted, id: '01890000-0000-7000-8000-000000000000' }, 'id'],
    ['null for a description', { name: unwanted, description: null }, 'description'],
    ['members that are no list', { name: unwanted, members: {} }, 'members'],
    ['a list among the members', { name: unwanted, members: [[]] }, 'members'],
    ['a member without e-mail', { name: unwanted, members: [{ name: 'A', role: 'member' }] }, 'members.0.email'],
    [
      'a member with an unknown role',
      { name: unwanted, members: [{ name: 'A', email: 'a@example.com', role: 'king' }] },
      'members.0.role',
    ],
    [
      'a member with an api_key',
      { name: unwanted, members: [{ name: 'A', email: 'a@example.com', role: 'member', api_key: 'x' }] },
      'members.0.api_key',
    ],
    [
      'a member twice',
      {
        name: unwanted,
        members: ['a@example.com', 'A@example.com'].map((email) => ({ name: 'A', email, role: 'member' })),
      },
      'members.1.email',
    ],
  ];

  it.each(bodies)('POST /team with %s is a 400 that names the field', async (_name, body, field) => {
    const problem = expectProblem(await call<Problem>('POST', '/team', { key: adminKey, body }), 400, 'invalid_input');
    expect(problem.errors?.map(({ path }) => path)).toContain(field);
  });

  it.each([
    '{',
    '[]',
    '"x"',
    '7',
    'null',
    '{"name":"Never written","__proto__":{"a":1}}',
    '{"name":"Never written","constructor":{"prototype":{}}}',
  ])('POST /team with %s is a 400', async (raw) => {
    expectProblem(await call<Problem>('POST', '/team', { key: adminKey, raw }), 400, 'invalid_input');
  });

  it('wrote nothing, any of them', async () => {
    // All at once: pages shift while other stories delete their teams.
    const names = (await query<{ name: string }>('SELECT name FROM teams.team')).map(({ name }) => name);
    expect(names).toContain('Bad input');
    expect(names).not.toContain(unwanted);
    expect(names).not.toContain('');
  });

  it('over 64 KiB is a 413, another content type a 415', async () => {
    expectProblem(
      await call<Problem>('POST', '/team', { key, body: { name: 'x', description: 'x'.repeat(65_536) } }),
      413,
      'payload_too_large',
    );
    expectProblem(
      await call<Problem>('POST', '/team', { key, raw: '<team/>', headers: { 'content-type': 'application/xml' } }),
      415,
      'unsupported_media_type',
    );
  });

  it('a Content-Type without a body is ignored, on any method', async () => {
    const headers = { 'content-type': 'application/json' };
    expect((await call('GET', `/team/${team}`, { key, headers })).status).toBe(200);
    expect((await call('DELETE', `/workspace/${team}`, { key, headers })).status).toBe(404);
    expect((await call('POST', `/team/${team}/suspend`, { key: adminKey, headers })).status).toBe(200);
    expect((await call('POST', `/team/${team}/unsuspend`, { key: adminKey, headers })).status).toBe(200);
  });
});

describe('bad terms of a key', () => {
  it.each([
    ['ip_whitelist', '10.0.0.0/33'],
    ['ip_whitelist', '127.1'],
    ['expiry_date', '2020-01-01T00:00:00Z'],
    ['expiry_date', '2999-01-01T00:00:00Z'],
    ['expiry_date', 'soon'],
    ['grace_seconds', -1],
    ['grace_seconds', 604_801],
    ['grace_seconds', 1.5],
  ])('%s: %s', async (field, value) => {
    const { body } = await call<{ members: { user_id: string }[] }>('GET', `/team/${team}`, { key });
    const path = `/team/${team}/members/${body.members[0]?.user_id}/api-key`;
    const problem = expectProblem(
      await call<Problem>('POST', path, { key, body: { [field]: value } }),
      400,
      'invalid_input',
    );
    expect(problem.errors?.map((fault) => fault.path)).toEqual([field]);
    expect((await call('GET', `/team/${team}`, { key })).status).toBe(200);
  });

  it.each(['+05:45', 'UTC+5', 'Mars/Olympus', 'asia/kathmandu', ''])('the time zone "%s"', async (timezone) => {
    const problem = expectProblem(
      await call<Problem>('PUT', '/user/profile', { key: adminKey, body: { timezone } }),
      400,
      'invalid_input',
    );
    expect(problem.errors?.[0]?.path).toBe('timezone');
  });
});
