import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createApiKey } from '@atoll/api-keys';
import { teams, type Credential } from '@atoll/contracts/teams';
import { NatsLink, RpcModule } from '@atoll/rpc';
import { startNats } from '@atoll/testing';
import { startGateway, type CallOptions, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';

const gateways: GatewayUnderTest[] = [];
/** What gateways use, and is closed after them. */
const used: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
  for (const close of used.splice(0)) await close();
});

async function start(...options: Parameters<typeof startGateway>): Promise<GatewayUnderTest> {
  const gateway = await startGateway(...options);
  gateway.services.answer(teams.get, () => aTeam());
  gateways.push(gateway);
  return gateway;
}

/** How many of so many calls are let in before the first 429. */
async function letIn(
  gateway: GatewayUnderTest,
  calls: number,
  options: CallOptions,
  url = `/api/team/${teamId}`,
): Promise<number> {
  for (let count = 0; count < calls; count++) {
    if ((await gateway.call('GET', url, options)).status === 429) return count;
  }
  return calls;
}

const keyId = (digit: number): string => `01890000-0000-7000-8000-00000000010${digit}`;
const userId = (digit: number): string => `01890000-0000-7000-8000-00000000020${digit}`;
const membership = { scope: 'membership' as const, teams: [{ team_id: teamId, role: 'viewer' as const }] };

describe('the limits', () => {
  it('let a caller burst to 60, then 10 a second, across all routes, and say so', async () => {
    const gateway = await start({ limits: {} });
    const key = gateway.services.key();
    const first = await gateway.call('GET', `/api/team/${teamId}`, { key });
    expect([first.headers['ratelimit-policy'], first.headers.ratelimit]).toEqual(['"key";q=60;w=6', '"key";r=59;t=1']);
    expect(await letIn(gateway, 100, { key }, '/api/nowhere')).toBe(59);
    const refused = await gateway.call('GET', `/api/team/${teamId}`, { key });
    expect(refused.body).toMatchObject({
      status: 429,
      code: 'too_many_requests',
      detail: 'Too many requests. Please try again later.',
      message: 'Too many requests. Please try again later.',
    });
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-policy': '"key";q=60;w=6',
      ratelimit: '"key";r=0;t=6',
    });
    gateway.clock.nowMs += 1_000;
    expect(await letIn(gateway, 100, { key })).toBe(10);
    expect(await letIn(gateway, 1, { key: gateway.services.key({ user_id: userId(1) }) })).toBe(1);
  });

  it('hold for a member or user, whatever the number of their keys: a rotated key finds the bucket as it was', async () => {
    const gateway = await start({ limits: { key: { count: 5, seconds: 60 }, billing: { count: 1, seconds: 60 } } });
    const keysOf = (credential: Partial<Credential>) =>
      [1, 2, 3].map((digit) => gateway.services.key({ ...credential, key_id: keyId(digit) }));
    const member = keysOf(membership);
    const counts = [];
    for (const key of member) counts.push(await letIn(gateway, 9, { key }));
    expect(counts).toEqual([5, 0, 0]);
    const ofAnother = { ...membership, teams: [{ team_id: keyId(9), role: 'viewer' as const }] };
    expect(await letIn(gateway, 9, { key: gateway.services.key(ofAnother) })).toBe(5);
    const [first, second] = keysOf({});
    expect(await letIn(gateway, 9, { key: first }, '/api/team-billing/x')).toBe(1);
    expect(await letIn(gateway, 9, { key: second }, '/api/team-billing/x')).toBe(0);
    expect(await letIn(gateway, 9, { key: second })).toBe(4);
    expect(await letIn(gateway, 9, { key: gateway.services.key({ ...membership, user_id: userId(1) }) })).toBe(5);
  });

  it('of the operator stand in place of all others', async () => {
    const one = { count: 1, seconds: 60 };
    const gateway = await start({ limits: { key: one, billing: one, team: one, admin: { count: 3, seconds: 60 } } });
    const operator = gateway.services.key({ platform_admin: true });
    const { headers } = await gateway.call('GET', '/api/team-billing/x', { key: operator });
    expect([headers['ratelimit-policy'], headers.ratelimit]).toEqual(['"admin";q=3;w=60', '"admin";r=2;t=20']);
    expect(await letIn(gateway, 9, { key: operator }, '/api/team-billing/x')).toBe(2);
    expect(await letIn(gateway, 9, { key: operator })).toBe(0);
    // A membership key of the operator acts as a member, and is counted as one.
    expect(await letIn(gateway, 9, { key: gateway.services.key({ ...membership, platform_admin: true }) })).toBe(1);
  });

  it('let an operator bill 60 customers in a row, and look at 100 teams 20 at a time, with no more than the defaults', async () => {
    const gateway = await start({ limits: {} });
    const key = gateway.services.key({ platform_admin: true });
    expect(await letIn(gateway, 60, { key }, '/api/team-billing/x')).toBe(60);
    for (let round = 0; round < 5; round++) {
      const together = Array.from(
        { length: 20 },
        async () => (await gateway.call('GET', `/api/team/${teamId}`, { key })).status,
      );
      expect(new Set(await Promise.all(together))).toEqual(new Set([200]));
    }
  });

  it('have a burst each: so many at once after a pause, and the rate after it', async () => {
    const limits = { key: { count: 60, seconds: 60, burst: 3 }, billing: { count: 60, seconds: 60, burst: 120 } };
    const gateway = await start({ limits });
    const key = gateway.services.key();
    const { headers } = await gateway.call('GET', '/api/team-billing/x', { key });
    expect(headers['ratelimit-policy']).toBe('"key";q=3;w=3, "billing";q=120;w=120');
    expect(await letIn(gateway, 9, { key })).toBe(2);
    gateway.clock.nowMs += 1_000;
    expect(await letIn(gateway, 9, { key })).toBe(1);
    gateway.clock.nowMs += 3_600_000;
    expect(await letIn(gateway, 9, { key })).toBe(3);
  });

  it('let a team so often, over all its membership keys, and no more for a member who is refused', async () => {
    const gateway = await start({ limits: { team: { count: 5, seconds: 60 }, key: { count: 4, seconds: 60 } } });
    const [one, two] = [1, 2].map((digit) => gateway.services.key({ ...membership, user_id: userId(digit) }));
    const { headers } = await gateway.call('GET', `/api/team/${teamId}`, { key: one });
    expect(headers['ratelimit-policy']).toBe('"key";q=4;w=60, "user";q=600;w=12, "team";q=5;w=60');
    expect(headers.ratelimit).toBe('"key";r=3;t=15, "user";r=599;t=1, "team";r=4;t=12');
    expect(await letIn(gateway, 9, { key: one })).toBe(3);
    expect(await letIn(gateway, 9, { key: two })).toBe(1);
    expect(await letIn(gateway, 4, { key: gateway.services.key({ user_id: userId(3) }) })).toBe(4);
  });

  it('let a user so often, over the membership keys of all their teams, and hold up no other member of these', async () => {
    const gateway = await start({ limits: { user: { count: 5, seconds: 60 }, key: { count: 3, seconds: 60 } } });
    const ofTeam = (digit: number, user_id = userId(1)) =>
      gateway.services.key({ ...membership, user_id, teams: [{ team_id: keyId(digit), role: 'viewer' }] });
    const counts = [];
    for (const digit of [1, 2, 3]) counts.push(await letIn(gateway, 9, { key: ofTeam(digit) }));
    expect(counts).toEqual([3, 2, 0]);
    expect(await letIn(gateway, 9, { key: ofTeam(3, userId(2)) })).toBe(3);
    expect(await letIn(gateway, 9, { key: gateway.services.key({ user_id: userId(1) }) })).toBe(3);
  });

  it('let whoever holds keys of people they invited so often, over all of these, and hold up no other, nor that user', async () => {
    const gateway = await start({ limits: { user: { count: 5, seconds: 60 }, key: { count: 3, seconds: 60 } } });
    const ofTeam = (digit: number, user_id: string, held_by?: string) =>
      gateway.services.key({
        ...membership,
        user_id,
        teams: [{ team_id: keyId(digit), role: 'viewer' }],
        ...(held_by !== undefined && { held_by }),
      });
    const held = [1, 2].map((digit) => ofTeam(digit, userId(digit), userId(9)));
    const { headers } = await gateway.call('GET', `/api/team/${teamId}`, { key: held[0] });
    expect(headers['ratelimit-policy']).toBe('"key";q=3;w=60, "user";q=5;w=60, "team";q=3000;w=60');
    expect(JSON.stringify(headers)).not.toContain(userId(9));
    const counts = [];
    for (const key of [...held, ofTeam(3, userId(9))]) counts.push(await letIn(gateway, 9, { key }));
    expect(counts).toEqual([2, 2, 3]);
    expect(await letIn(gateway, 9, { key: ofTeam(1, userId(1)) })).toBe(0);
    expect(await letIn(gateway, 9, { key: ofTeam(4, userId(1)) })).toBe(3);
    expect(await letIn(gateway, 9, { key: gateway.services.key({ user_id: userId(9) }) })).toBe(3);
  });

  it('stand in the headers in one order, the narrowest holder first, whatever their times', async () => {
    const gateway = await start({
      limits: {
        key: { count: 9, seconds: 900 },
        billing: { count: 9, seconds: 90 },
        user: { count: 9, seconds: 18 },
        team: { count: 9, seconds: 9 },
      },
    });
    const { headers } = await gateway.call('GET', '/api/team-billing/x', { key: gateway.services.key(membership) });
    expect(headers['ratelimit-policy']).toBe('"key";q=9;w=900, "billing";q=9;w=90, "user";q=9;w=18, "team";q=9;w=9');
    expect(headers.ratelimit).toMatch(/^"key";r=8;t=100, "billing";r=8;t=10, "user";r=8;t=2, "team";r=8;t=1$/);
  });

  it('take nothing from anybody for what is refused, and tell the longest wait', async () => {
    const gateway = await start({
      limits: { team: { count: 2, seconds: 60 }, key: { count: 5, seconds: 60 }, billing: { count: 1, seconds: 60 } },
    });
    const key = gateway.services.key({ ...membership, key_id: keyId(1) });
    const call = (url = `/api/team/${teamId}`) => gateway.call('GET', url, { key });
    expect([(await call('/api/team-billing/x')).status, (await call()).status]).toEqual([404, 200]);
    for (let count = 0; count < 9; count++) {
      const { status, headers } = await call();
      expect([status, headers['retry-after'], headers.ratelimit]).toEqual([
        429,
        '30',
        '"key";r=3;t=24, "user";r=598;t=1, "team";r=0;t=60',
      ]);
    }
    expect(gateway.logged().at(-1)).toMatchObject({ status: 429, key_id: keyId(1) });
    const { headers } = await call('/api/team-billing/x');
    expect([headers['retry-after'], headers.ratelimit]).toEqual([
      '60',
      '"key";r=3;t=24, "billing";r=0;t=60, "user";r=598;t=1, "team";r=0;t=60',
    ]);
    gateway.clock.nowMs += 30_000;
    expect((await call()).status).toBe(200);
  });

  it.each(['/api/team-billing/x', '/api/workspace-billing/x/y'])('count %s more strictly, on top', async (url) => {
    const gateway = await start({ limits: { billing: { count: 2, seconds: 60 } } });
    const key = gateway.services.key();
    expect(await letIn(gateway, 9, { key }, url)).toBe(2);
    expect(await letIn(gateway, 9, { key }, '/api/team-billings')).toBe(9);
  });

  it('hold for an address without credentials: 401 so often, then 429; a key is not held up by that', async () => {
    const gateway = await start({ limits: { anonymous: { count: 3, seconds: 60 } } });
    const key = gateway.services.key();
    for (const url of ['/api/team', '/api/nowhere', '/api/%zz'])
      expect((await gateway.call('GET', url, {})).status).toBe(401);
    expect((await gateway.call('GET', '/api/%zz', {})).status).toBe(429);
    const { status, headers } = await gateway.call('GET', '/api/team', {});
    expect([status, headers['retry-after'], headers.ratelimit]).toEqual([429, '20', '"anonymous";r=0;t=60']);
    expect((await gateway.call('GET', '/api/team', { from: '198.51.100.1' })).status).toBe(401);
    expect(await letIn(gateway, 9, { key })).toBe(9);
  });

  it('count a key that is used from elsewhere as a failed authentication of that address', async () => {
    const gateway = await start({ limits: { authFailures: { count: 2, seconds: 60 } } });
    const key = gateway.services.key({ ip_whitelist: '203.0.113.0/24' });
    const statuses = [];
    for (let count = 0; count < 3; count++) {
      statuses.push((await gateway.call('GET', '/api/team', { key, from: '198.51.100.1' })).status);
    }
    expect(statuses).toEqual([403, 403, 429]);
    expect((await gateway.call('GET', '/api/team', { key: createApiKey(), from: '198.51.100.1' })).status).toBe(429);
    expect(await letIn(gateway, 9, { key, from: '203.0.113.9' })).toBe(9);
  });

  it('do not count health, metrics, documentation, and nothing at all when off', async () => {
    const none = { count: 1, seconds: 60 };
    const gateway = await start({ limits: { anonymous: none, key: none } });
    for (const url of ['/livez', '/readyz', '/metrics', '/api/docs', '/api/docs/errors', '/api/openapi.json']) {
      expect(await letIn(gateway, 3, {}, url)).toBe(3);
      expect((await gateway.call('GET', url)).headers.ratelimit).toBeUndefined();
    }
    const off = await start({ limits: 'off' });
    expect(await letIn(off, 200, { key: off.services.key() })).toBe(200);
  });

  it('are shared by replicas where the store is NATS', async () => {
    const server = await startNats();
    const secret = 'a secret for this spec';
    const limits = {
      anonymous: { count: 3, seconds: 60 },
      key: { count: 4, seconds: 60 },
      admin: { count: 100, seconds: 60 },
    };
    const options = { limits, limitStore: 'nats' as const };
    const links = [1, 2].map(() => NatsLink.open({ servers: server.url }));
    used.push(...links.map((link) => () => link.close()), () => server.stop());
    const replicas = links.map((link) => start({ ...options, rpc: RpcModule.forNats({ link, secret }) }));
    const [one, two] = (await Promise.all(replicas)) as [GatewayUnderTest, GatewayUnderTest];
    const warn = jest.spyOn(Logger.prototype, 'warn');
    /** Undefined where NATS, on a busy machine, did not answer in time: some were counted by one replica alone. */
    const answersTo = async (from: string): Promise<number[] | undefined> => {
      warn.mockClear();
      const statuses = [];
      for (const gateway of [one, two, one, two, one])
        statuses.push((await gateway.call('GET', '/api/team', { from })).status);
      const isLocal = warn.mock.calls.some(([text]) => /limits are local|by this process only/.test(String(text)));
      return isLocal ? undefined : statuses;
    };
    let statuses = await answersTo('198.51.100.0');
    for (let host = 1; !statuses; host += 1) {
      // Until then the limits are still local.
      await delay(1_100);
      statuses = await answersTo(`198.51.100.${host}`);
    }
    warn.mockRestore();
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
  });

  it('cannot be shared over a bus that is not NATS: the gateway does not start', async () => {
    await expect(startGateway({ limitStore: 'nats' })).rejects.toThrow('only where the bus is NATS');
  });
});
