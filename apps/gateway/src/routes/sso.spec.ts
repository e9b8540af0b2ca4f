import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { singleSignOn, type OpenedSession, type SsoAnswer, type User } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { startGateway, type GatewayUnderTest, type Reply } from '../testing/gateway-fixture.js';

const sessionId = '01890000-0000-7000-8000-00000000000c';
const refreshToken = `${sessionId.replaceAll('-', '')}.1.${'A'.repeat(43)}`;
const flowToken = `${'0'.repeat(32)}.1.${'B'.repeat(43)}`;
const atProvider = 'https://id.example.com/authorize?client_id=atoll&state=s&nonce=n&code_challenge=c';
const opened: OpenedSession = {
  access_token: 'eyJ.eyJ.x',
  expires_in: 900,
  user: { id: sessionId } as User,
  session_id: sessionId,
  refresh_token: refreshToken,
  refresh_expires_in: 43_200,
};
const fromElsewhere = { origin: 'https://id.example.com', 'sec-fetch-site': 'cross-site' };
const lax = 'Path=/; HttpOnly; SameSite=Lax';

let gateway: GatewayUnderTest;
let behindTls: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
  behindTls = await startGateway({ publicUrl: 'https://atoll.example.com' });
  for (const { services } of [gateway, behindTls]) {
    services.answer(singleSignOn.begin, ({ provider }) => {
      if (provider !== 'corp') throw new AppError('not_found', 'No such provider.');
      return { url: atProvider, flow_token: flowToken, expires_in: 600 };
    });
    services.answer(singleSignOn.finish, ({ flow_token }) => {
      if (flow_token === flowToken) return opened;
      throw new AppError('unauthenticated', 'The log-in at Corp was not started in this browser.');
    });
  }
});
afterAll(async () => {
  await gateway.close();
  await behindTls.close();
});

const begin = (path = 'corp') => gateway.call<string>('GET', `/api/user/sso/${path}`, { headers: fromElsewhere });
const comeBack = (query: string, cookie = `atoll-sso-s=${flowToken}`) =>
  gateway.call<string>('GET', `/api/user/sso/corp/callback?${query}`, {
    headers: { ...fromElsewhere, ...(cookie && { cookie }) },
  });
const cookiesOf = ({ headers }: Reply<unknown>): string[] => [headers['set-cookie'] ?? []].flat();
const sent = (): SsoAnswer => gateway.services.callsOf(singleSignOn.finish).at(-1)?.input as SsoAnswer;

/** A page for a person, that runs nothing and loads nothing, and sets no session. */
function expectPage(answer: Reply<string>, status: number, sentence: RegExp): void {
  expect([answer.status, answer.headers['content-type']]).toEqual([status, 'text/html; charset=utf-8']);
  expect(answer.headers['content-security-policy']).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.body).toMatch(/<h1>You are not logged in<\/h1>/);
  expect(answer.body).toMatch(sentence);
  expect(answer.body).toContain(answer.headers['x-request-id']);
  expect(cookiesOf(answer).filter((cookie) => !cookie.includes('Max-Age=0'))).toEqual([]);
}

describe('a log-in at a provider', () => {
  it('leads there from any page, with the flow in a cookie that comes back from another site and that no script reads', async () => {
    const answer = await begin();
    expect([answer.status, answer.headers.location]).toEqual([302, atProvider]);
    expect(cookiesOf(answer)).toEqual([`atoll-sso-s=${flowToken}; Max-Age=600; ${lax}`]);
    const tls = await behindTls.call('GET', '/api/user/sso/corp');
    expect(cookiesOf(tls)).toEqual([`__Host-atoll-sso-s=${flowToken}; Max-Age=600; ${lax}; Secure`]);
  });

  it('that fails is a problem to whoever asks for JSON, and a page to all others', async () => {
    const typeFor = async (accept: string) =>
      (await gateway.call('GET', '/api/user/sso/other', { headers: { ...fromElsewhere, accept } })).headers[
        'content-type'
      ];
    for (const accept of ['application/json', 'application/problem+json, */*;q=0.1', 'APPLICATION/JSON']) {
      expect(await typeFor(accept)).toMatch(/^application\/problem\+json/);
    }
    for (const accept of ['*/*', 'text/html,application/json;q=0.9', 'image/png'])
      expect(await typeFor(accept)).toMatch(/^text\/html/);
  });

  it('comes back with the cookie of the session, to the platform’s own page, with no token in the address', async () => {
    const answer = await comeBack('code=c&state=s');
    expect([answer.status, answer.headers.location]).toEqual([302, '/']);
    expect(cookiesOf(answer)).toEqual([
      `atoll-sso-s=; Max-Age=0; ${lax}`,
      `atoll-session=${refreshToken}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict`,
    ]);
    expect(sent()).toMatchObject({
      provider: 'corp',
      flow_token: flowToken,
      code: 'c',
      state: 's',
      address: '127.0.0.1',
    });
    const logged = JSON.stringify(gateway.logged());
    for (const secret of [flowToken, refreshToken, 'code=c', 'state=s']) expect(logged).not.toContain(secret);
  });

  it('passes on what the standard names, and takes what a provider adds', async () => {
    const answer = await comeBack(
      'code=c&state=s&iss=https%3A%2F%2Fid.example.com&session_state=1&client_info=x&constructor=y',
    );
    expect([answer.status, answer.headers.location]).toEqual([302, '/']);
    expect(sent()).toMatchObject({ code: 'c', state: 's', iss: 'https://id.example.com' });
    expect(sent()).not.toHaveProperty('client_info');
  });

  it.each(['next', 'redirect', 'redirect_uri', 'return_to', 'url'])(
    'leads nowhere else afterwards, whatever %s says',
    async (name) => {
      for (const target of [
        'https://elsewhere.example.com',
        '//elsewhere.example.com',
        '/%5Celsewhere.example.com',
        'javascript:alert(1)',
      ]) {
        const asked = `${name}=${encodeURIComponent(target)}`;
        const begun = await begin(`corp?${asked}`);
        expectPage(begun, 400, new RegExp(name));
        expect(begun.headers.location).toBeUndefined();
        expect((await comeBack(`code=c&state=s&${asked}`)).headers.location).toBe('/');
      }
    },
  );

  it('is of the browser that began it', async () => {
    const forged = `atoll-sso-s=${flowToken.replace('B', 'C')}`;
    for (const cookie of [
      '',
      'atoll-sso-s=',
      forged,
      `__Host-atoll-sso-s=${flowToken}`,
      `atoll-sso-t=${flowToken}`,
      `atoll-sso=${flowToken}`,
    ]) {
      expectPage(await comeBack('code=c&state=s', cookie), 401, /not started in this browser/);
    }
  });

  it('may be begun in several tabs: an answer takes the flow of its own state, and ends no other', async () => {
    const other = flowToken.replace('B', 'C');
    const cookie = `atoll-sso-t=${other}; atoll-sso-s=${flowToken}`;
    expect(cookiesOf(await comeBack('code=c&state=s', cookie))[0]).toBe(`atoll-sso-s=; Max-Age=0; ${lax}`);
    expect(sent().flow_token).toBe(flowToken);
    await comeBack('code=c&state=t', cookie);
    expect(sent().flow_token).toBe(other);
    for (const state of ['', 'state=x', 'state=a%3Bb', `state=${'s'.repeat(200)}`]) {
      const answer = await comeBack(`code=c&${state}`, cookie);
      expect([answer.status, cookiesOf(answer)]).toEqual([401, []]);
    }
    expect(cookiesOf(await comeBack('code=c&state=%0d%0aset-cookie:x', cookie))).toEqual([]);
  });

  it('is one of five at most: the eldest gives way to a newer one', async () => {
    const cookie = ['a', 'b', 'c', 'd', 'e', 'f'].map((state) => `atoll-sso-${state}=x`).join('; ');
    const answer = await gateway.call('GET', '/api/user/sso/corp', { headers: { ...fromElsewhere, cookie } });
    expect(cookiesOf(answer)).toEqual([
      ...['a', 'b'].map((state) => `atoll-sso-${state}=; Max-Age=0; ${lax}`),
      `atoll-sso-s=${flowToken}; Max-Age=600; ${lax}`,
    ]);
  });
});

describe('a log-in at a provider that fails is a page', () => {
  it.each<[string, AppError, number, RegExp]>([
    [
      'refused',
      new AppError('forbidden', 'There is an account with your address already.'),
      403,
      /account with your address/,
    ],
    [
      'the provider is away',
      new AppError('unavailable', 'Corp cannot be reached.', { retryAfterSeconds: 5 }),
      503,
      /Corp cannot be reached/,
    ],
    ['late', new AppError('deadline_exceeded', 'No answer in time.'), 504, /No answer in time/],
    ['a bug', new AppError('internal', 'Something went wrong on our side.'), 500, /on our side/],
    ['markup in a name', new AppError('forbidden', '<script>alert(1)</script>"\''), 403, /&#60;script&#62;alert\(1\)/],
  ])('%s', async (_what, error, status, sentence) => {
    const failing = await startGateway();
    for (const operation of [singleSignOn.begin, singleSignOn.finish]) {
      failing.services.answer(operation as typeof singleSignOn.begin, () => {
        throw error;
      });
    }
    for (const path of ['corp', 'corp/callback?code=c&state=s']) {
      const answer = await failing.call<string>('GET', `/api/user/sso/${path}`, {
        headers: { cookie: `atoll-sso-s=${flowToken}` },
      });
      expectPage(answer, status, sentence);
      expect(answer.body).not.toContain('<script');
    }
    await failing.close();
  });

  it.each([
    ['corp%00', 400],
    ['Corp!', 400],
    ['nobody', 404],
    ['corp?next=x', 400],
    ['corp/callback?code=a&code=b', 400],
    ['corp/callback?code=%ff', 400],
    [`corp/callback?code=${'c'.repeat(5_000)}&state=s`, 400],
    ['corp/callback?error=', 400],
  ])('%s', async (path, status) => {
    expectPage(await begin(path), status, /<p>[^<]+<\/p>/);
  });

  it('for who asks too often, and while no service answers', async () => {
    const limited = await startGateway({ limits: { anonymous: { count: 1, seconds: 60 } } });
    const ask = () => limited.call<string>('GET', '/api/user/sso/corp');
    expectPage(await ask(), 503, /./);
    const refused = await ask();
    expectPage(refused, 429, /Too many requests/);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    await limited.close();
  });

  it('and costs the address a failure only where the answer of the browser was not good', async () => {
    const limited = await startGateway({ limits: { authFailures: { count: 2, seconds: 60 } } });
    const back = async () => (await limited.call('GET', '/api/user/sso/corp/callback?code=c&state=s')).status;
    limited.services.answer(singleSignOn.finish, () => {
      throw new AppError('unavailable', 'away');
    });
    expect([await back(), await back(), await back()]).toEqual([503, 503, 503]);
    limited.services.answer(singleSignOn.finish, () => {
      throw new AppError('unauthenticated', 'wrong');
    });
    expect([await back(), await back(), await back()]).toEqual([401, 401, 429]);
    await limited.close();
  });
});
