import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import ipaddr from 'ipaddr.js';
import { usage } from '@atoll/contracts/billing';
import { credentials, teams, users, workspaces, type Credential } from '@atoll/contracts/teams';
import { createApiKey } from '@atoll/api-keys';
import { AppError } from '@atoll/errors';
import { startGateway, type CallOptions, type GatewayUnderTest, type Reply } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import type { Problem } from '../errors/problem.js';

const ada = '01890000-0000-7000-8000-00000000000b';
const grace = '01890000-0000-7000-8000-00000000000c';
const adas: Credential = {
  key_id: '01890000-0000-7000-8000-00000000000a',
  user_id: ada,
  scope: 'user',
  platform_admin: false,
  timezone: 'UTC',
  teams: [],
  expiry_date: null,
  ip_whitelist: '',
};

const aFact = {
  source: 'meter',
  id: '1',
  time: '2026-10-01T00:00:00Z',
  resource_id: 'pod:1',
  kind: 'pod',
  sku: 'pod',
  quantity: 1,
  team_id: teamId,
  workspace_id: teamId,
};

let gateway: GatewayUnderTest;
beforeEach(async () => {
  gateway = await startGateway();
  gateway.services.answer(teams.get, () => aTeam());
});
afterEach(() => gateway.close());

const get = (options: CallOptions): Promise<Reply<Problem>> => gateway.call('GET', `/api/team/${teamId}`, options);
const statusOf = async (options: CallOptions): Promise<number> => (await get(options)).status;
const lookUps = (): number => gateway.services.callsOf(credentials.verify).length;

describe('a key', () => {
  it('opens as Bearer, as x-api-key and as both, duplicated or not', async () => {
    const key = gateway.services.key();
    expect(await statusOf({ key })).toBe(200);
    expect(await statusOf({ headers: { 'x-api-key': key } })).toBe(200);
    expect(await statusOf({ key, headers: { 'x-api-key': key } })).toBe(200);
    expect(await statusOf({ headers: { 'x-api-key': [key, key] } })).toBe(200);
  });

  it('is closed to a team whose second factor it lacks, as a session is', async () => {
    const key = gateway.services.key({ teams: [{ team_id: teamId, role: 'viewer', lacks_second_factor: true }] });
    await get({ key });
    expect(gateway.services.contextOf(teams.get).caller).toMatchObject({
      teams: [{ teamId, role: 'viewer', lacksSecondFactor: true }],
    });
  });

  it('says who holds it in place of its user, where that is known', async () => {
    const held_by = '4f1c9f3e-0000-4000-8000-000000000001';
    await get({ key: gateway.services.key({ held_by }) });
    expect(gateway.services.contextOf(teams.get).caller).toMatchObject({ heldBy: held_by });
    await get({ key: gateway.services.key() });
    expect(gateway.services.contextOf(teams.get).caller).not.toHaveProperty('heldBy');
  });

  it('crosses the bus as its digest alone', async () => {
    const key = gateway.services.key();
    await get({ key });
    expect(JSON.stringify(gateway.services.calls)).not.toContain(key);
    expect(gateway.services.callsOf(credentials.verify)).toMatchObject([
      {
        input: { digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown },
        context: { caller: { kind: 'system', service: 'gateway' } },
      },
    ]);
  });

  it('has its whitelist read once, not with each request', async () => {
    const whitelist = Array.from({ length: 300 }, (_, host) => `198.51.${host >> 8}.${host & 255}`);
    const key = gateway.services.key({ ip_whitelist: [...whitelist, '127.0.0.1'].join() });
    const read = jest.spyOn(ipaddr.IPv4, 'parse');
    try {
      expect(await statusOf({ key })).toBe(200);
      expect(read.mock.calls.length).toBeGreaterThan(300);
      read.mockClear();
      expect(await statusOf({ key })).toBe(200);
      expect(read.mock.calls.length).toBeLessThan(10);
    } finally {
      read.mockRestore();
    }
  });

  it('that cannot be one is 401 without a look-up', async () => {
    const key = gateway.services.key();
    const attempts: Record<string, string | string[]>[] = [
      {},
      { authorization: '' },
      { authorization: 'Bearer ' },
      { authorization: `Basic ${key}` },
      { 'x-api-key': '' },
      { authorization: `Bearer ${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}` },
      { authorization: `Bearer atl_${'a'.repeat(8192)}` },
      { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.' },
      { authorization: `Bearer ${key}`, 'x-api-key': createApiKey() },
      { 'x-api-key': [key, createApiKey()] },
    ];
    for (const headers of attempts) {
      const { status, body, headers: answered } = await get({ headers });
      expect([status, body.code, answered['www-authenticate']]).toEqual([401, 'unauthenticated', 'Bearer']);
    }
    expect(lookUps()).toBe(0);
  });

  it('in the query string is neither read nor logged', async () => {
    const key = gateway.services.key();
    for (const name of ['api_key', 'access_token', 'x-api-key', 'authorization']) {
      const { status, body } = await gateway.call('GET', `/api/team/${teamId}?${name}=${key}`);
      expect([status, body.instance]).toEqual([401, `/api/team/${teamId}`]);
    }
    expect(lookUps()).toBe(0);
    expect(JSON.stringify(gateway.logged())).not.toContain(key);
  });

  it('that nobody has is 401', async () => expect(await statusOf({ key: createApiKey() })).toBe(401));

  it('expires while it is cached', async () => {
    const key = gateway.services.key({ expiry_date: new Date(gateway.clock.nowMs + 2_000).toISOString() });
    expect(await statusOf({ key })).toBe(200);
    gateway.clock.nowMs += 1_999;
    expect(await statusOf({ key })).toBe(200);
    gateway.clock.nowMs += 1;
    expect(await statusOf({ key })).toBe(401);
    expect(lookUps()).toBe(1);
  });

  it.each(['good', 'unknown'])(
    'is looked up once more where nobody answers for a second: one that is %s',
    async (is) => {
      const key = gateway.services.key();
      const first = Promise.withResolvers<Credential>();
      gateway.services.answer(credentials.verify, () => {
        if (lookUps() === 1) return first.promise;
        if (is === 'good') return adas;
        throw new AppError('unauthenticated', 'No such key.');
      });
      expect(await statusOf({ key })).toBe(is === 'good' ? 200 : 401);
      expect(lookUps()).toBe(2);
      first.resolve(adas);
    },
  );

  it('is looked up once for all who come at once', async () => {
    const key = gateway.services.key();
    expect(await Promise.all(Array.from({ length: 20 }, () => statusOf({ key })))).toEqual(
      Array.from({ length: 20 }, () => 200),
    );
    expect(lookUps()).toBe(1);
  });
});

describe('a revoked key', () => {
  it('is out at once when the broadcast arrives', async () => {
    const key = gateway.services.key();
    const other = gateway.services.key({ user_id: grace });
    expect([await statusOf({ key }), await statusOf({ key: other })]).toEqual([200, 200]);
    gateway.services.revoke(key);
    gateway.services.broadcastChange(ada);
    await Promise.resolve();
    expect([await statusOf({ key }), await statusOf({ key: other })]).toEqual([401, 200]);
    expect(lookUps()).toBe(3);
  });

  it('is out after 5 s when it is lost', async () => {
    const key = gateway.services.key();
    expect(await statusOf({ key })).toBe(200);
    gateway.services.revoke(key);
    gateway.clock.nowMs += 4_999;
    expect(await statusOf({ key })).toBe(200);
    gateway.clock.nowMs += 1;
    expect(await statusOf({ key })).toBe(401);
  });

  it('with grace works on until the new expiry, beside the one that replaces it', async () => {
    const key = gateway.services.key();
    expect(await statusOf({ key })).toBe(200);
    gateway.services.set(key, { expiry_date: new Date(gateway.clock.nowMs + 10_000).toISOString() });
    const replacement = gateway.services.key();
    gateway.services.broadcastChange(ada);
    await Promise.resolve();
    expect([await statusOf({ key }), await statusOf({ key: replacement })]).toEqual([200, 200]);
    gateway.clock.nowMs += 10_000;
    expect([await statusOf({ key }), await statusOf({ key: replacement })]).toEqual([401, 200]);
  });
});

describe('what a call changes about its own caller', () => {
  it('holds for the next call, before the first is answered', async () => {
    const key = gateway.services.key();
    gateway.services.answer(users.updateProfile, () => {
      gateway.services.set(key, { timezone: 'Asia/Kathmandu' });
      return {} as never;
    });
    await get({ key });
    expect((await gateway.call('PUT', '/api/user/profile', { key, body: { timezone: 'Asia/Kathmandu' } })).status).toBe(
      200,
    );
    await get({ key });
    expect(gateway.services.contextOf(teams.get).caller).toMatchObject({ timezone: 'Asia/Kathmandu' });
  });

  it('holds although a look-up that began before it ends after it', async () => {
    const key = gateway.services.key();
    const slow = gateway.services.key({ key_id: '01890000-0000-7000-8000-0000000000ff' });
    let release = (): void => undefined;
    const began = new Promise<void>((resolve) => {
      gateway.services.answer(credentials.verify, async ({ digest }) => {
        const asOf = { ...adas, key_id: digest.slice(0, 8) };
        if (gateway.services.callsOf(credentials.verify).length > 1) return { ...asOf, timezone: 'Asia/Kathmandu' };
        resolve();
        await new Promise<void>((released) => (release = released));
        return asOf;
      });
    });
    const early = get({ key: slow });
    await began;
    gateway.services.answer(users.updateProfile, () => ({}) as never);
    expect((await gateway.call('PUT', '/api/user/profile', { key, body: {} })).status).toBe(200);
    release();
    expect((await early).status).toBe(200);
    await get({ key: slow });
    expect(gateway.services.contextOf(teams.get).caller).toMatchObject({ timezone: 'Asia/Kathmandu' });
  });

  it('makes no other call forget a key: not a read, nor a write that cannot change the caller', async () => {
    const key = gateway.services.key({ platform_admin: true });
    gateway.services.answer(workspaces.rename, () => ({}) as never);
    gateway.services.answer(usage.record, () => ({ accepted: 1, duplicates: 0 }));
    await get({ key });
    for (let count = 0; count < 10; count++) {
      expect((await gateway.call('PUT', `/api/workspace/${teamId}`, { key, body: { name: 'x' } })).status).toBe(200);
      expect((await gateway.call('POST', '/api/usage-events', { key, body: { events: [aFact] } })).status).toBe(200);
    }
    expect(lookUps()).toBe(1);
  });

  it('costs nothing where a call was refused before it could change anything', async () => {
    const key = gateway.services.key();
    await get({ key });
    expect((await gateway.call('POST', '/api/team', { key })).status).toBe(400);
    expect((await gateway.call('POST', '/api/nowhere', { key })).status).toBe(404);
    await get({ key });
    expect(lookUps()).toBe(1);
  });
});

describe('while the teams service is down', () => {
  it('cached keys go on for 5 s, then all is 503, never 401', async () => {
    const key = gateway.services.key();
    expect(await statusOf({ key })).toBe(200);
    gateway.services.stop(credentials.verify);
    gateway.clock.nowMs += 4_999;
    expect(await statusOf({ key })).toBe(200);
    gateway.clock.nowMs += 1;
    const { status, body, headers } = await get({ key });
    expect([status, body.code, headers['retry-after'], headers['www-authenticate']]).toEqual([
      503,
      'unavailable',
      '1',
      undefined,
    ]);
  });

  it('a look-up that comes too late is 503 too, and one that breaks is 500', async () => {
    const key = gateway.services.key();
    for (const [code, expected] of [
      ['deadline_exceeded', 503],
      ['internal', 500],
    ] as const) {
      gateway.services.answer(credentials.verify, () => {
        throw new AppError(code, 'The database host db-7 is gone.');
      });
      const { status, body } = await get({ key });
      expect(status).toBe(expected);
      if (code === 'deadline_exceeded') expect(JSON.stringify(body)).not.toContain('db-7');
    }
  });
});

describe('an ip_whitelist', () => {
  const refusals = async (
    gatewayAt: GatewayUnderTest,
    whitelist: string,
    calls: [string, string | undefined, number][],
  ) => {
    gatewayAt.services.answer(teams.get, () => aTeam());
    const key = gatewayAt.services.key({ ip_whitelist: whitelist });
    for (const [from, forwarded, expected] of calls) {
      const headers: Record<string, string> =
        forwarded === undefined
          ? {}
          : { 'x-forwarded-for': forwarded, 'x-real-ip': forwarded, forwarded: `for=${forwarded}` };
      const { status, body } = await gatewayAt.call('GET', `/api/team/${teamId}`, { key, from, headers });
      expect([from, forwarded, status]).toEqual([from, forwarded, expected]);
      if (expected === 403)
        expect([body.code, body.detail]).toEqual(['ip_not_allowed', expect.stringContaining(' address ')]);
    }
  };

  it('holds for the peer, IPv4-mapped or not; no header changes who that is', async () => {
    await refusals(gateway, '203.0.113.0/24, 2001:db8::/32', [
      ['203.0.113.9', undefined, 200],
      ['::ffff:203.0.113.9', undefined, 200],
      ['2001:db8::7', undefined, 200],
      ['198.51.100.1', undefined, 403],
      ['198.51.100.1', '203.0.113.9', 403],
      ['::ffff:198.51.100.1', '203.0.113.9', 403],
      ['203.0.113.9', '198.51.100.1', 200],
    ]);
  });

  it('is refused with the address that was seen, in its one spelling', async () => {
    const key = gateway.services.key({ ip_whitelist: '203.0.113.0/24' });
    const detail = async (from: string): Promise<string> => (await get({ key, from })).body.detail;
    expect(await detail('198.51.100.1')).toBe('The API key may not be used from the address 198.51.100.1.');
    expect(await detail('::ffff:198.51.100.1')).toBe('The API key may not be used from the address 198.51.100.1.');
    expect(await detail('2001:DB8:0::1')).toBe('The API key may not be used from the address 2001:db8::1.');
  });

  it('holds for the right-most untrusted hop behind trusted proxies', async () => {
    const proxied = await startGateway({ trustedProxies: ['10.0.0.0/8'] });
    await refusals(proxied, '203.0.113.0/24, 10.0.0.0/8', [
      ['10.0.0.1', '203.0.113.9', 200],
      ['10.0.0.1', '198.51.100.1, 203.0.113.9, 10.0.0.2', 200],
      ['10.0.0.1', '203.0.113.9, 198.51.100.1', 403],
      ['10.0.0.1', '203.0.113.9, nonsense', 403],
      ['198.51.100.1', '203.0.113.9', 403],
    ]);
    await proxied.close();
  });
});
