import { describe, expect, it, jest } from '@jest/globals';
import { validateSync } from 'class-validator';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { mustEnd } from '@atoll/testing';
import { addressAllowed, IpWhitelist, networkOf, parseAddressRange, whitelistRanges } from './ip-whitelist.js';

class Terms {
  @IpWhitelist({ optional: true })
  ip_whitelist?: string;
}

function faults(ipWhitelist: unknown): string[] {
  const terms = Object.assign(new Terms(), { ip_whitelist: ipWhitelist });
  return validateSync(terms).flatMap((fault) => Object.values(fault.constraints ?? {}));
}

describe('an IP whitelist', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7', true],
    ['203.0.113.8', '203.0.113.7', false],
    ['203.0.113.200', '203.0.113.0/24', true],
    ['203.0.114.1', '203.0.113.0/24', false],
    ['10.9.8.7', '192.0.2.1, 10.0.0.0/8', true],
    ['2001:db8::1', '2001:db8::/32', true],
    ['2001:db9::1', '2001:db8::/32', false],
    ['::ffff:203.0.113.7', '203.0.113.0/24', true],
    ['203.0.113.7', '::ffff:203.0.113.0/120', true],
    ['fe80::1%eth0', 'fe80::/10', true],
    ['2001:db8::1', '0.0.0.0/0', false],
    ['203.0.113.7', '::/0', false],
    ['not an address', '0.0.0.0/0', false],
    ['203.0.113.7', '', true],
  ])('%s under "%s": %s', (address, whitelist, allowed) => {
    expect(addressAllowed(address, whitelistRanges(whitelist))).toBe(allowed);
  });

  it.each(['203.0.113.7', '203.0.113.0/24,2001:db8::/32', ' 203.0.113.7 , ::1 ', ''])('"%s" is taken', (text) => {
    expect(faults(text)).toEqual([]);
  });

  it.each([
    '127.1',
    '0x7f.0.0.1',
    '203.0.113.0/33',
    '2001:db8::/129',
    'localhost',
    '203.0.113.7,',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '::ffff:10.0.0.0/8',
    'fe80::1%eth0',
    '::127.0.0.1',
  ])('"%s" is refused, and the bad entry is named', (text) => {
    expect(faults(text).join()).toMatch(
      /ip_whitelist must be a comma-separated list of IPv4\/IPv6 addresses or CIDRs; not one: "/,
    );
  });

  it('is refused however many colons it has', () => {
    for (const end of ['', 'g']) {
      expect(mustEnd(() => faults(':'.repeat(1_000_000) + end)).join()).toContain('not one: "::');
    }
  });

  it('is refused with its first ten bad entries, and no more of them are read', () => {
    const read = jest.spyOn(ipaddr.IPv6, 'parse');
    try {
      expect(faults(Array(600).fill('::1::').join()).join()).toMatch(/not one: ("::1::", ){9}"::1::" and more$/);
      // Once to find a fault and once to name it.
      expect(read.mock.calls.length).toBeLessThanOrEqual(22);
    } finally {
      read.mockRestore();
    }
    expect(faults(Array(10).fill('::1::').join()).join()).toMatch(/not one: ("::1::", ){9}"::1::"$/);
  });

  it('that is no text is refused', () => {
    expect(faults(7)).not.toEqual([]);
    expect(faults(null)).not.toEqual([]);
  });

  it('law: an IPv4 address is allowed exactly where its leading bits are those of the range', () => {
    const address = fc.integer({ min: 0, max: 0xffffffff });
    const text = (bits: number) => [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
    fc.assert(
      fc.property(address, address, fc.integer({ min: 0, max: 32 }), (one, other, prefix) => {
        const same = prefix === 0 || one >>> (32 - prefix) === other >>> (32 - prefix);
        expect(addressAllowed(text(one), whitelistRanges(`${text(other)}/${prefix}`))).toBe(same);
      }),
    );
  });

  it('law: no text makes the parser throw', () => {
    fc.assert(fc.property(fc.string(), (text) => parseAddressRange(text) === null || parseAddressRange(text) !== null));
  });
});

describe('the network of an address', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:DB8:0:1:ffff::2', '2001:db8:0:1::'],
    ['2001:db8:0:1::', '2001:db8:0:1::'],
    ['2001:db8:0:2::1', '2001:db8:0:2::'],
    ['fe80::1%eth0', 'fe80::'],
    ['unknown', 'unknown'],
  ])('of %s is %s', (address, network) => expect(networkOf(address)).toBe(network));
});
