import { describe, expect, it } from '@jest/globals';
import { loadEnv } from '@atoll/service';
import { GatewayEnv, optionsFrom } from './env.js';
import { defaultLimits } from './rate-limits/limits.js';

describe('the environment of the gateway', () => {
  it('may be empty', () => {
    expect(optionsFrom(loadEnv(GatewayEnv, {}))).toEqual({
      publicUrl: 'http://localhost:3000',
      trustedProxies: [],
      limits: defaultLimits,
      limitStore: 'memory',
      deadlineMs: 5_000,
      drainDelayMs: 0,
    });
  });

  it('opens the compatibility mount where a port is given', () => {
    expect(loadEnv(GatewayEnv, {}).ATOLL_COMPAT_PORT).toBeUndefined();
    expect(loadEnv(GatewayEnv, { ATOLL_COMPAT_PORT: '' }).ATOLL_COMPAT_PORT).toBeUndefined();
    expect(loadEnv(GatewayEnv, { ATOLL_COMPAT_PORT: '8081' }).ATOLL_COMPAT_PORT).toBe(8081);
  });

  it('sets limits, proxies, deadline and store', () => {
    const env = loadEnv(GatewayEnv, {
      TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::1',
      ATOLL_LIMIT_KEY: '5/1',
      ATOLL_LIMIT_AUTH_FAILURES: '3/600',
      ATOLL_LIMIT_STORE: 'nats',
      ATOLL_DEADLINE_MS: '250',
      ATOLL_DRAIN_DELAY_MS: '5000',
      ATOLL_PUBLIC_URL: 'https://atoll.example.com',
    });
    expect(optionsFrom(env)).toEqual({
      publicUrl: 'https://atoll.example.com',
      trustedProxies: ['10.0.0.0/8', '2001:db8::1'],
      limits: { ...defaultLimits, key: { count: 5, seconds: 1 }, authFailures: { count: 3, seconds: 600 } },
      limitStore: 'nats',
      deadlineMs: 250,
      drainDelayMs: 5_000,
    });
    expect(optionsFrom(loadEnv(GatewayEnv, { ATOLL_LIMITS: 'off' })).limits).toBe('off');
  });

  it.each([
    { ATOLL_LIMIT_KEY: '0/60' },
    { ATOLL_LIMIT_TEAM: '600' },
    { ATOLL_LIMIT_BILLING: '1e3/60' },
    { ATOLL_LIMITS: 'no' },
    { ATOLL_LIMIT_STORE: 'redis' },
    { ATOLL_DEADLINE_MS: 'soon' },
    { ATOLL_DRAIN_DELAY_MS: '-1' },
    { ATOLL_COMPAT_PORT: '0' },
    { ATOLL_COMPAT_PORT: '65536' },
    { ATOLL_COMPAT_PORT: 'yes' },
    { TRUSTED_PROXIES: 'everybody' },
  ])('is refused with what is wrong: %j', (source) => {
    expect(() => loadEnv(GatewayEnv, source)).toThrow(Object.keys(source)[0]);
  });

  it.each([
    ['ATOLL_DEADLINE_MS', 'a whole number of milliseconds from 100 to 300000'],
    ['ATOLL_DRAIN_DELAY_MS', 'a whole number of milliseconds from 0 to 10000'],
    ['ATOLL_COMPAT_PORT', 'a whole number from 1 to 65535'],
    ['ATOLL_LIMIT_KEY_BURST', 'a whole number from 1 to 999999999'],
  ])('says the whole range of %s', (variable, range) => {
    for (const value of ['x', '-1', '99999999999']) {
      expect(() => loadEnv(GatewayEnv, { [variable]: value })).toThrow(`${variable} must be ${range}`);
    }
  });
});
