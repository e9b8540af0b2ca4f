import { describe, expect, it } from '@jest/globals';
import { loadEnv, readSettings } from '@atoll/service';
import { GatewayEnv, gatewaySettings, optionsFrom } from './env.js';
import { defaultLimits } from './rate-limits/limits.js';

const pepper = 'a pepper of some length';
const load = (source: NodeJS.ProcessEnv = {}) => loadEnv(GatewayEnv, { ATOLL_KEY_PEPPER: pepper, ...source });

describe('the environment of the gateway', () => {
  it('may have the pepper alone', () => {
    expect(optionsFrom(load())).toEqual({
      keyPepper: pepper,
      publicUrl: 'http://localhost:3000',
      trustedProxies: [],
      limits: defaultLimits,
      limitStore: 'memory',
      drainDelayMs: 0,
    });
  });

  it('in a process of its own names all that is missing at once', async () => {
    const lines = [
      '  ATOLL_BUS_SECRET is missing: it must be one or more secrets of at least 16 characters, separated by commas',
      '  ATOLL_KEY_PEPPER is missing: it must be at least 16 characters long',
    ];
    await expect(readSettings(gatewaySettings, {})).rejects.toThrow(
      new Error(['Invalid environment variables:', ...lines].join('\n')),
    );
  });

  it('opens the compatibility mount where a port is given', () => {
    expect(load().ATOLL_COMPAT_PORT).toBeUndefined();
    expect(load({ ATOLL_COMPAT_PORT: '' }).ATOLL_COMPAT_PORT).toBeUndefined();
    expect(load({ ATOLL_COMPAT_PORT: '8081' }).ATOLL_COMPAT_PORT).toBe(8081);
  });

  it('sets limits, proxies, deadline and store', () => {
    const env = load({
      TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::1',
      ATOLL_LIMIT_KEY: '5/1',
      ATOLL_LIMIT_AUTH_FAILURES: '3/600',
      ATOLL_LIMIT_STORE: 'nats',
      ATOLL_DRAIN_DELAY_MS: '5000',
      ATOLL_PUBLIC_URL: 'https://atoll.example.com',
    });
    expect(optionsFrom(env)).toEqual({
      keyPepper: pepper,
      publicUrl: 'https://atoll.example.com',
      trustedProxies: ['10.0.0.0/8', '2001:db8::1'],
      limits: { ...defaultLimits, key: { count: 5, seconds: 1 }, authFailures: { count: 3, seconds: 600 } },
      limitStore: 'nats',
      drainDelayMs: 5_000,
    });
    expect(optionsFrom(load({ ATOLL_LIMITS: 'off' })).limits).toBe('off');
  });

  it.each([
    { ATOLL_KEY_PEPPER: '' },
    { ATOLL_KEY_PEPPER: 'too short' },
    { ATOLL_LIMIT_KEY: '0/60' },
    { ATOLL_LIMIT_TEAM: '600' },
    { ATOLL_LIMIT_BILLING: '1e3/60' },
    { ATOLL_LIMITS: 'no' },
    { ATOLL_LIMIT_STORE: 'redis' },
    { ATOLL_DRAIN_DELAY_MS: '-1' },
    { ATOLL_COMPAT_PORT: '0' },
    { ATOLL_COMPAT_PORT: '65536' },
    { ATOLL_COMPAT_PORT: 'yes' },
    { TRUSTED_PROXIES: 'everybody' },
  ])('is refused with what is wrong: %j', (source) => {
    expect(() => load(source)).toThrow(Object.keys(source)[0]);
  });

  it.each([
    ['ATOLL_DRAIN_DELAY_MS', 'a whole number of milliseconds from 0 to 10000'],
    ['ATOLL_COMPAT_PORT', 'a whole number from 1 to 65535'],
    ['ATOLL_LIMIT_KEY_BURST', 'a whole number from 1 to 999999999'],
  ])('says the whole range of %s', (variable, range) => {
    for (const value of ['x', '-1', '99999999999']) {
      expect(() => load({ [variable]: value })).toThrow(`${variable} must be ${range}`);
    }
  });
});
