import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createApiKey, digestApiKey } from '@atoll/api-keys';
import { credentials, teams, type Credential } from '@atoll/contracts/teams';
import { AppError, isAppError } from '@atoll/errors';
import type { GatewayOptions } from '../gateway-options.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { pepper } from '../testing/services-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { Authenticator } from './authenticator.js';

const dayMs = 24 * 60 * 60 * 1000;
const flooded = '198.51.100.1';

let gateway: GatewayUnderTest;
afterEach(async () => {
  jest.useRealTimers();
  await gateway.close();
});

/**
 * A gateway whose limits for callers are out of the way: one token of a failed authentication a day, `burst` at once.
 */
async function start(burst: number, options: Partial<GatewayOptions> = {}): Promise<void> {
  const off = { count: 999_999_999, seconds: 1 };
  const authFailures = { count: 1, seconds: 99_999, burst };
  gateway = await startGateway({
    limits: { key: { ...off, burst: off.count }, anonymous: off, authFailures },
    ...options,
  });
  gateway.services.answer(teams.get, () => aTeam());
}

const status = async (key: string, from = flooded): Promise<number> =>
  (await gateway.call('GET', `/api/team/${teamId}`, { key, from })).status;
const statuses = (keys: readonly string[], from?: string): Promise<number[]> =>
  Promise.all(keys.map((key) => status(key, from)));
const invented = (count: number): string[] => Array.from({ length: count }, () => createApiKey());
const lookUps = (): number => gateway.services.callsOf(credentials.verify).length;
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

/** The status of an attempt with a key from a network, made without a request. */
const verify = (key: string, network: string): Promise<number> =>
  gateway.app
    .get(Authenticator)
    .verify(key, { network, charge: () => Promise.resolve(), refund: () => Promise.resolve() })
    .then(
      () => 200,
      (error: unknown) => (isAppError(error) && error.code === 'unauthenticated' ? 401 : 500),
    );

/** Replaces look-ups by ones that wait until they are released, and counts how many wait at once. */
function holdLookUps(holds: (digest: string) => boolean): {
  held: () => number;
  most: () => number;
  release: () => void;
} {
  const waiting: (() => void)[] = [];
  let [open, most] = [false, 0];
  const good: Credential = {
    key_id: '01890000-0000-7000-8000-00000000000a',
    user_id: '01890000-0000-7000-8000-00000000000b',
    scope: 'user',
    platform_admin: false,
    timezone: 'UTC',
    teams: [],
    expiry_date: null,
    ip_whitelist: '',
  };
  gateway.services.answer(credentials.verify, async ({ digest }) => {
    if (!holds(digest)) return good;
    if (!open) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        most = Math.max(most, waiting.length);
      });
    }
    throw new AppError('unauthenticated', 'No such key.');
  });
  const release = (): void => {
    open = true;
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { held: () => waiting.length, most: () => most, release };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('keys that nobody has', () => {
  it('are looked up as often as their address may fail, then refused with 429 and without a look-up', async () => {
    await start(3);
    expect(await statuses(invented(200))).toEqual([401, 401, 401, ...times(197, 429)]);
    expect(lookUps()).toBe(3);
    const { body, headers } = await gateway.call('GET', '/api/team', { key: createApiKey(), from: flooded });
    expect([body.code, body.detail]).toEqual(['too_many_requests', 'Too many requests. Please try again later.']);
    expect(headers['ratelimit']).toMatch(/^"auth-failures";r=0;/);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(await status(createApiKey(), '198.51.100.2')).toBe(401);
  });

  it('count by the /64 of an IPv6 address', async () => {
    await start(2);
    const from = (address: string): Promise<number> => status(createApiKey(), address);
    expect([await from('2001:db8::1'), await from('2001:db8::ffff:0:0:2'), await from('2001:db8::3')]).toEqual([
      401, 401, 429,
    ]);
    expect(await from('2001:db8:0:1::1')).toBe(401);
    expect(await from('::ffff:198.51.100.1')).toBe(401);
    expect([await from('198.51.100.1'), await from('198.51.100.1')]).toEqual([401, 429]);
  });

  it('are not looked up twice within a second, and cost a token each time', async () => {
    await start(4);
    const key = createApiKey();
    expect([await status(key), await status(key)]).toEqual([401, 401]);
    gateway.clock.nowMs += 999;
    expect([await status(key), lookUps()]).toEqual([401, 1]);
    gateway.clock.nowMs += 1;
    expect([await status(key), lookUps()]).toEqual([401, 2]);
    expect(await status(key)).toBe(429);
  });

  it('are looked up four at a time, from 10,000 addresses as from one; beside them nobody with a good key waits', async () => {
    await start(20);
    // So many take long, and the last of them waits all that time: none loses its patience here.
    jest.useFakeTimers({ doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate'] });
    const good = createApiKey();
    const isGood = digestApiKey(good, pepper);
    const lookUp = holdLookUps((digest) => digest !== isGood);
    expect(await status(good)).toBe(200);
    const addresses = Array.from({ length: 10_000 }, (_, at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`);
    const asked = addresses.slice(0, 250).map((address) => status(createApiKey(), address));
    // These skip HTTP, which takes long and is not what is tested.
    const attempts = addresses.slice(250).map((network) => verify(createApiKey(), network));
    const flood = Promise.all([...asked, ...attempts]);
    await until(() => lookUp.held() >= 4);
    // Past the cache: the good key is looked up again, and does not stand in the line of the others.
    gateway.clock.nowMs += 5_000;
    expect(await statuses(times(20, good))).toEqual(times(20, 200));
    expect(await status(good, '10.0.0.1')).toBe(200);
    lookUp.release();
    const answered = Map.groupBy(await flood, (one) => one);
    expect([...answered.keys()].sort()).toEqual([401]);
    expect(lookUp.most()).toBe(4);
  });

  it('are refused with 503 where they would wait too long, and that costs no token', async () => {
    await start(1, { deadlineMs: 60_000 });
    const lookUp = holdLookUps(() => true);
    const first = [1, 2, 3, 4].map((host) => status(createApiKey(), `10.1.0.${host}`));
    await until(() => lookUp.held() === 4);
    const late = await gateway.call('GET', '/api/team', { key: createApiKey(), from: '10.1.0.5' });
    expect([late.body.code, late.headers['retry-after'], late.headers['ratelimit']]).toEqual([
      'unavailable',
      '1',
      undefined,
    ]);
    lookUp.release();
    expect(await Promise.all(first)).toEqual(times(4, 401));
    expect([await status(createApiKey(), '10.1.0.5'), await status(createApiKey(), '10.1.0.5')]).toEqual([401, 429]);
  });
});

describe('a good key', () => {
  it('that was verified within 24 h works from an address that may not try any more; any other is refused there', async () => {
    await start(1);
    const [known, unknown] = [gateway.services.key(), gateway.services.key()];
    expect(await status(known, '203.0.113.9')).toBe(200);
    expect(await statuses(invented(3))).toEqual([401, 429, 429]);
    expect([await status(known), await status(unknown)]).toEqual([200, 429]);
    expect(await status(unknown, '203.0.113.9')).toBe(200);
    gateway.clock.nowMs += 5_000;
    expect([await status(known), await status(unknown)]).toEqual([200, 200]);
    // Each verification counts anew.
    gateway.clock.nowMs += dayMs - 1;
    expect([await status(createApiKey()), await status(known)]).toEqual([429, 200]);
    gateway.clock.nowMs += dayMs;
    expect(await statuses(invented(1))).toEqual([401]);
    expect(await status(known)).toBe(429);
  });

  it('costs its address nothing, however many come at once', async () => {
    await start(2);
    const keys = Array.from({ length: 100 }, () => gateway.services.key());
    expect(await statuses(keys)).toEqual(times(100, 200));
    expect(await statuses(invented(3))).toEqual([401, 401, 429]);
  });

  it('is looked up once, and charged once, for all that present it at once', async () => {
    await start(1);
    const key = gateway.services.key();
    expect(await statuses(times(50, key))).toEqual(times(50, 200));
    expect(lookUps()).toBe(1);
  });

  it('costs nothing either where it cannot be checked', async () => {
    await start(2);
    const key = gateway.services.key();
    gateway.services.stop(credentials.verify);
    expect(await statuses(times(5, key))).toEqual(times(5, 503));
    for (let count = 0; count < 5; count++) expect(await status(key)).toBe(503);
    const { headers } = await gateway.call('GET', '/api/team', { key, from: flooded });
    expect([headers['ratelimit'], headers['retry-after']]).toEqual([undefined, '1']);
  });

  it('is unknown again once it is revoked, or expired: its address is charged before the next look-up', async () => {
    await start(2);
    const revoked = gateway.services.key();
    const expiring = gateway.services.key({ expiry_date: new Date(gateway.clock.nowMs + 10_000).toISOString() });
    expect(await statuses([revoked, expiring])).toEqual([200, 200]);
    gateway.services.revoke(revoked);
    gateway.clock.nowMs += 10_000;
    expect(await statuses([revoked, expiring])).toEqual([401, 401]);
    const before = lookUps();
    gateway.clock.nowMs += 5_000;
    expect(await statuses([revoked, expiring])).toEqual([429, 429]);
    expect(lookUps()).toBe(before);
  });
});
