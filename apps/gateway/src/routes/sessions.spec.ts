import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { refreshTokensOf } from '@atoll/api-keys';
import { links, sessions, type OpenedSession, type User } from '@atoll/contracts/teams';
import { AppError, tooManyRequests } from '@atoll/errors';
import { FakeSessions } from '../testing/access-token-fixture.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { pepper } from '../testing/services-fixture.js';

const sessionId = '01890000-0000-7000-8000-00000000000c';
const [refreshToken, next] = [1, 2].map((generation) => refreshTokensOf(pepper).make(sessionId, generation)) as [
  string,
  string,
];
const invented = (): string => refreshTokensOf('another pepper').make(randomUUID());
const opened: OpenedSession = {
  access_token: 'eyJ.eyJ.x',
  expires_in: 900,
  user: { id: sessionId } as User,
  session_id: sessionId,
  refresh_token: refreshToken,
  refresh_expires_in: 43_200,
};
const plain = 'Path=/; HttpOnly; SameSite=Strict';
const logIn = { email: 'ada@example.com', password: 'correct horse battery staple' };

let gateway: GatewayUnderTest;
let behindTls: GatewayUnderTest;
/** One for all, since a gateway remembers by which keys tokens are signed. */
let fake: FakeSessions;
beforeAll(async () => {
  gateway = await startGateway();
  fake = new FakeSessions(gateway);
  behindTls = await startGateway({ publicUrl: 'https://atoll.example.com' });
  for (const { services } of [gateway, behindTls]) {
    services.answer(sessions.logIn, () => opened);
    services.answer(sessions.refresh, () => ({ ...opened, refresh_token: next }));
    services.answer(sessions.logOut, () => ({ user_id: null }));
    services.answer(links.check, ({ token }) => {
      if (token !== 'good') throw new AppError('unauthenticated', 'The link cannot be used.');
      return {};
    });
    services.answer(links.use, ({ token }) => {
      if (token === 'good') return { email: 'ada@example.com' };
      throw new AppError('unauthenticated', 'The link cannot be used.');
    });
  }
});
afterAll(async () => {
  await gateway.close();
  await behindTls.close();
});

const cookie = (value: string, name = 'atoll-session') => ({ cookie: `other=1; ${name}=${value}; last=2` });

describe('log-in', () => {
  it('answers with the access token and the user, and sets the refresh token as a cookie that no script reads', async () => {
    const { status, headers, body } = await gateway.call('POST', '/api/user/login', {
      body: logIn,
      headers: { 'user-agent': 'a\tbrowser', 'idempotency-key': 'ignored' },
      from: '2001:db8::1',
    });
    expect([status, body]).toEqual([200, { access_token: 'eyJ.eyJ.x', expires_in: 900, user: { id: sessionId } }]);
    expect(headers['set-cookie']).toBe(`atoll-session=${refreshToken}; Max-Age=43200; ${plain}`);
    const { input, context } = gateway.services.callsOf(sessions.logIn).at(-1) ?? {};
    expect(input).toEqual({ ...logIn, address: '2001:db8::1', network: '2001:db8::', device: 'a browser' });
    expect(context).toMatchObject({ caller: { kind: 'system', service: 'gateway' } });
    expect(context).not.toHaveProperty('idempotency');
  });

  it('behind TLS sets a cookie that no other host can set', async () => {
    const { headers } = await behindTls.call('POST', '/api/user/login', { body: logIn });
    expect(headers['set-cookie']).toBe(`__Host-atoll-session=${refreshToken}; Max-Age=43200; ${plain}; Secure`);
  });

  it.each([
    [{ email: 'x', password: 'y' }, 'email'],
    [{ email: `${'a'.repeat(320)}@example.com`, password: 'y' }, 'email'],
    [{ email: 'ada\u202e@example.com', password: 'y' }, 'email'],
    [{ email: 'ada@example.com', password: 'y'.repeat(257) }, 'password'],
    [{ email: 'ada@example.com', password: 7 }, 'password'],
    [{ ...logIn, next: 'https://elsewhere.example.com' }, 'next'],
  ])('refuses %j', async (body, path) => {
    const answer = await gateway.call('POST', '/api/user/login', { body });
    expect([answer.status, answer.body.errors?.[0]?.path]).toEqual([400, path]);
  });

  it.each([
    ['ADA@Example.COM', 'ada@example.com'],
    ['ada+tag@example.com', 'ada+tag@example.com'],
    ['jose\u0301@example.com', 'jos\u00e9@example.com'],
    ['ada@b\u00dccher.example', 'ada@xn--bcher-kva.example'],
    ['ada@bu\u0308cher.example', 'ada@xn--bcher-kva.example'],
  ])('takes %j for the account of %j', async (spelt, email) => {
    expect((await gateway.call('POST', '/api/user/login', { body: { ...logIn, email: spelt } })).status).toBe(200);
    expect(gateway.services.callsOf(sessions.logIn).at(-1)?.input).toMatchObject({ email });
  });

  it('that fails costs its address a failure; one that succeeds costs none', async () => {
    const limited = await startGateway({ limits: { authFailures: { count: 2, seconds: 60 } } });
    const attempt = async () => (await limited.call('POST', '/api/user/login', { body: logIn })).status;
    limited.services.answer(sessions.logIn, () => opened);
    expect([await attempt(), await attempt(), await attempt()]).toEqual([200, 200, 200]);
    limited.services.answer(sessions.logIn, () => {
      throw new AppError('unauthenticated', 'wrong');
    });
    expect([await attempt(), await attempt(), await attempt()]).toEqual([401, 401, 429]);
    await limited.close();
  });

  it('says what is left to its address, where its account was tried too often too', async () => {
    const limited = await startGateway({
      limits: { anonymous: { count: 9, seconds: 60 }, authFailures: { count: 5, seconds: 60 } },
    });
    limited.services.answer(sessions.logIn, () => {
      throw tooManyRequests(30);
    });
    const { status, headers } = await limited.call('POST', '/api/user/login', { body: logIn });
    expect([status, headers['retry-after'], headers['ratelimit'], headers['ratelimit-policy']]).toEqual([
      429,
      '30',
      expect.stringMatching(/^"anonymous";r=\d;t=\d+$/),
      '"anonymous";q=9;w=60',
    ]);
    await limited.close();
  });

  it('counts its address among those without credentials', async () => {
    const limited = await startGateway({ limits: { anonymous: { count: 2, seconds: 60 } } });
    limited.services.answer(sessions.logIn, () => opened);
    limited.services.answer(sessions.refresh, () => opened);
    const statuses: number[] = [];
    for (let call = 0; call < 3; call++)
      statuses.push((await limited.call('POST', '/api/user/login', { body: logIn })).status);
    expect(statuses).toEqual([200, 200, 429]);
    // A session counts by itself: a whole office may share the address.
    expect((await limited.call('POST', '/api/user/refresh', { headers: cookie(refreshToken) })).status).toBe(200);
    await limited.close();
  });
});

describe('refresh', () => {
  it('takes the cookie and replaces it', async () => {
    const { status, headers } = await gateway.call('POST', '/api/user/refresh', { headers: cookie(refreshToken) });
    expect([status, headers['set-cookie']]).toEqual([200, `atoll-session=${next}; Max-Age=43200; ${plain}`]);
    expect(gateway.services.callsOf(sessions.refresh).at(-1)?.input).toMatchObject({ refresh_token: refreshToken });
  });

  it('passes on the id of the attempt, and none where the client names none', async () => {
    const attempt = '7f1b0c52-A9e8_4d6f';
    for (const headers of [{ ...cookie(refreshToken), 'refresh-attempt': attempt }, cookie(refreshToken)])
      expect((await gateway.call('POST', '/api/user/refresh', { headers })).status).toBe(200);
    const [named, unnamed] = gateway.services.callsOf(sessions.refresh).slice(-2);
    expect(named?.input).toMatchObject({ refresh_token: refreshToken, attempt });
    expect(unnamed?.input).not.toHaveProperty('attempt');
  });

  it.each(['', 'x'.repeat(15), 'x'.repeat(65), `${'x'.repeat(16)} y`, `${'x'.repeat(16)}, ${'x'.repeat(16)}`])(
    'refuses an attempt whose id has not its form, and leaves the cookie: %j',
    async (attempt) => {
      const before = gateway.services.callsOf(sessions.refresh).length;
      const headers = { ...cookie(refreshToken), 'refresh-attempt': attempt };
      const answer = await gateway.call('POST', '/api/user/refresh', { headers });
      expect([answer.status, answer.body.detail, answer.headers['set-cookie']]).toEqual([
        400,
        'Refresh-Attempt must be 16 to 64 letters, digits, hyphens and underscores.',
        undefined,
      ]);
      expect(gateway.services.callsOf(sessions.refresh)).toHaveLength(before);
    },
  );

  it.each([{}, cookie('nonsense'), cookie(invented()), cookie(refreshToken, '__Host-atoll-session')])(
    'without a session is 401, once: %j',
    async (headers) => {
      const before = gateway.services.callsOf(sessions.refresh).length;
      const answer = await gateway.call('POST', '/api/user/refresh', { headers });
      expect([answer.status, answer.headers['set-cookie']]).toEqual([401, `atoll-session=; Max-Age=0; ${plain}`]);
      expect(gateway.services.callsOf(sessions.refresh)).toHaveLength(before);
    },
  );

  it('of a session that has ended takes the cookie away', async () => {
    const other = await startGateway();
    other.services.answer(sessions.refresh, () => {
      throw new AppError('unauthenticated', 'The session has ended. Log in again.');
    });
    const answer = await other.call('POST', '/api/user/refresh', { headers: cookie(refreshToken) });
    expect([answer.status, answer.headers['set-cookie']]).toEqual([401, `atoll-session=; Max-Age=0; ${plain}`]);
    // While nobody knows, the cookie stays.
    other.services.stop(sessions.refresh);
    const unknown = await other.call('POST', '/api/user/refresh', { headers: cookie(refreshToken) });
    expect([unknown.status, unknown.headers['set-cookie']]).toEqual([503, undefined]);
    await other.close();
  });

  it.each(['refresh', 'logout'])('and log-out take one credential: %s', async (operation) => {
    const path = `/api/user/${operation}`;
    const own = await fake.token(sessionId, { claims: { exp: 1 } });
    const good = operation === 'refresh' ? [await fake.token(fake.open())] : [];
    const expired = await fake.token(fake.open(), { claims: { exp: 1 } });
    const others = [...good, expired, await fake.token(randomUUID()), gateway.services.key()];
    expect((await gateway.call('POST', path, { key: own, headers: cookie(refreshToken) })).status).toBeLessThan(300);
    for (const key of others)
      expect((await gateway.call('POST', path, { key, headers: cookie(refreshToken) })).status).toBe(401);
  });
});

describe('log-out', () => {
  it('takes the cookie away, whether or not there is one', async () => {
    for (const headers of [cookie(refreshToken), {}]) {
      const answer = await gateway.call('POST', '/api/user/logout', { headers });
      expect([answer.status, answer.headers['set-cookie']]).toEqual([204, `atoll-session=; Max-Age=0; ${plain}`]);
    }
    expect(gateway.services.callsOf(sessions.logOut).at(-1)?.input).toEqual({ refresh_token: refreshToken });
  });
});

describe('log-out by an access token beside the cookie of another session', () => {
  /** Ends the sessions of `own`; any other is somebody else's. Gives back which ended, and what came of the cookie. */
  async function logOutBeside(own: (session: string) => string[]) {
    const session = fake.open();
    const ended: string[] = [];
    gateway.services.answer(sessions.end, ({ id }) => {
      if (!own(session).includes(id)) throw new AppError('not_found', 'No such session.');
      ended.push(id);
      return {};
    });
    const before = gateway.services.callsOf(sessions.logOut).length;
    const key = await fake.token(session);
    const { status, headers } = await gateway.call('POST', '/api/user/logout', { key, headers: cookie(refreshToken) });
    expect([status, gateway.services.callsOf(sessions.logOut).length]).toEqual([204, before]);
    return { session, ended, cookie: headers['set-cookie'] };
  }

  it('ends the session of the token, and leaves that of another user, whose cookie stays', async () => {
    const { session, ended, cookie: set } = await logOutBeside((own) => [own]);
    expect([ended, set]).toEqual([[session], undefined]);
  });

  it('ends both where they have one user, so that nobody is logged in with this browser any more', async () => {
    const { session, ended, cookie: set } = await logOutBeside((own) => [own, sessionId]);
    expect([ended, set]).toEqual([[session, sessionId], `atoll-session=; Max-Age=0; ${plain}`]);
  });
});

describe('the cookies of many sessions', () => {
  const cookieOf = (id: string) => cookie(refreshTokensOf(pepper).make(id));
  const sent = async (limited: GatewayUnderTest, operation: string, headers: { cookie: string }) =>
    (await limited.call('POST', `/api/user/${operation}`, { headers })).status;

  it.each(['refresh', 'logout'])(
    'from one address count as one team does, each beside its own: %s',
    async (operation) => {
      const limited = await startGateway({
        limits: { anonymous: { count: 2, seconds: 60 }, team: { count: 5, seconds: 60 } },
      });
      limited.services.answer(sessions.refresh, () => opened);
      limited.services.answer(sessions.logOut, () => ({ user_id: randomUUID() }));
      const [one, other] = [cookieOf(randomUUID()), cookieOf(randomUUID())];
      const statuses = [];
      for (const headers of [one, one, one, other, other, cookieOf(randomUUID()), cookieOf(randomUUID())])
        statuses.push((await sent(limited, operation, headers)) < 300);
      expect(statuses).toEqual([true, true, false, true, true, true, false]);
      await limited.close();
    },
  );
});

it.each(['refresh', 'logout'])(
  'an invented cookie counts for its address, and is asked of nobody: %s',
  async (operation) => {
    const limited = await startGateway({ limits: { anonymous: { count: 2, seconds: 60 } } });
    limited.services.answer(sessions.logOut, () => ({ user_id: null }));
    const attempt = async () =>
      (await limited.call('POST', `/api/user/${operation}`, { headers: cookie(invented()) })).status;
    const refused = operation === 'refresh' ? 401 : 204;
    expect([await attempt(), await attempt(), await attempt()]).toEqual([refused, refused, 429]);
    expect(limited.services.callsOf(sessions.logOut)).toEqual([]);
    await limited.close();
  },
);

describe('log-out by an access token alone', () => {
  it('ends its session', async () => {
    const ended: string[] = [];
    gateway.services.answer(sessions.end, ({ id }) => {
      ended.push(id);
      return {};
    });
    const session = fake.open();
    const { status } = await gateway.call('POST', '/api/user/logout', { key: await fake.token(session) });
    expect([status, ended]).toEqual([204, [session]]);
  });

  it('of a session that another request has just ended succeeds', async () => {
    gateway.services.answer(sessions.end, () => {
      throw new AppError('not_found', 'No such session.');
    });
    const { status } = await gateway.call('POST', '/api/user/logout', { key: await fake.token(fake.open()) });
    expect(status).toBe(204);
  });

  it('that is worth nothing any more succeeds, and ends none', async () => {
    const before = gateway.services.callsOf(sessions.end).length;
    const expired = await fake.token(fake.open(), { claims: { exp: 1 } });
    for (const key of [expired, await fake.token(randomUUID())]) {
      expect((await gateway.call('POST', '/api/user/logout', { key })).status).toBe(204);
    }
    expect(gateway.services.callsOf(sessions.end)).toHaveLength(before);
  });
});

describe('a page of another origin', () => {
  it.each([
    ...['login', 'refresh', 'logout', 'link', 'password-reset'],
    ...['login/second-factor', 'login/passkey/begin', 'login/passkey/finish'],
  ])('may not call %s', async (operation) => {
    const foreign: Record<string, string>[] = [
      { origin: 'https://elsewhere.example.com' },
      { origin: 'null' },
      { origin: 'http://localhost:3001' },
      { origin: 'http://localhost.example.com:3000' },
      { origin: 'https://localhost:3000' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:3000' },
    ];
    for (const headers of foreign) {
      const answer = await gateway.call('POST', `/api/user/${operation}`, {
        body: {},
        headers: { ...cookie(refreshToken), ...headers },
      });
      expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    }
  });

  it('is told by its own address, not by the Host that a request names', async () => {
    const headers = { host: 'elsewhere.example.com', origin: 'https://elsewhere.example.com' };
    expect((await gateway.call('POST', '/api/user/login', { body: logIn, headers })).status).toBe(403);
    const own = { host: 'elsewhere.example.com', origin: 'http://127.0.0.1:3000', 'sec-fetch-site': 'same-origin' };
    expect((await gateway.call('POST', '/api/user/login', { body: logIn, headers: own })).status).toBe(200);
  });
});

it('the cookie of a session is no credential anywhere else', async () => {
  expect((await gateway.call('GET', '/api/user/profile', { headers: cookie(refreshToken) })).status).toBe(401);
  expect((await gateway.call('GET', '/api/user/sessions', { headers: cookie(refreshToken) })).status).toBe(401);
});

it('a one-time link that cannot be used is 401', async () => {
  const use = (token: string) =>
    gateway.call('POST', '/api/user/link', { body: { token, password: logIn.password }, from: '2001:db8::1' });
  expect((await use('good')).body).toEqual({ email: 'ada@example.com' });
  expect(gateway.services.callsOf(links.use).at(-1)?.input).toMatchObject({ token: 'good', network: '2001:db8::' });
  expect((await use('bad')).status).toBe(401);
});

it('a request for a new password is accepted without a body', async () => {
  gateway.services.answer(links.reset, () => ({}));
  const { status, headers, body } = await gateway.call<unknown>('POST', '/api/user/password-reset', {
    body: { email: logIn.email },
  });
  expect([status, headers['content-length'], headers['content-type'], body]).toEqual([202, '0', undefined, '']);
});

it('checks of one-time links count as their uses do: whoever guesses gets 429 for either', async () => {
  const limited = await startGateway({ limits: { authFailures: { count: 3, seconds: 60 } } });
  limited.services.answer(links.check, ({ token }) => {
    if (token !== 'good') throw new AppError('unauthenticated', 'The link cannot be used.');
    return {};
  });
  const check = (token: string) => limited.call('POST', '/api/user/link/check', { body: { token } });
  for (let time = 0; time < 4; time += 1) expect((await check('good')).status).toBe(204);
  expect([(await check('a')).status, (await check('b')).status, (await check('c')).status]).toEqual([401, 401, 401]);
  expect((await check('good')).status).toBe(429);
  const use = { body: { token: 'good', password: logIn.password } };
  expect((await limited.call('POST', '/api/user/link', use)).status).toBe(429);
  await limited.close();
});
