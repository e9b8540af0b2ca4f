import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseAddressRange, type AddressRange } from '@atoll/contracts';
import { clientAddress, unknownAddress } from './client-address.js';

const ranges = (...texts: string[]): AddressRange[] => texts.map((text) => parseAddressRange(text)!);
const trusted = ranges('10.0.0.0/8', 'fd00::/8');

const publicAddress = fc
  .tuple(fc.integer({ min: 11, max: 223 }), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((parts) => parts.join('.'));
const proxyAddress = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map((parts) => ['10', ...parts].join('.'));
/** What anybody could write into a header, addresses of proxies and of others' included. */
const attackerText = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), proxyAddress).map((text) => text.replaceAll(',', ''));

describe('the address of a client', () => {
  it('law: an untrusted peer is its own address, whatever it writes into the header', () => {
    fc.assert(
      fc.property(publicAddress, fc.array(attackerText), (peer, hops) => {
        expect(clientAddress(peer, hops.join(', '), trusted)).toBe(peer);
        expect(clientAddress(`::ffff:${peer}`, hops.join(', '), trusted)).toBe(peer);
      }),
    );
  });

  it('law: without trusted proxies the header is not looked at', () => {
    fc.assert(
      fc.property(
        proxyAddress,
        fc.array(attackerText),
        (peer, hops) => clientAddress(peer, hops.join(','), []) === peer,
      ),
    );
  });

  it('law: behind trusted proxies it is what the first of them saw, whatever the client wrote before', () => {
    fc.assert(
      fc.property(
        publicAddress,
        fc.array(attackerText),
        fc.array(proxyAddress),
        proxyAddress,
        (client, written, proxies, peer) => {
          const header = [...written, client, ...proxies].join(', ');
          expect(clientAddress(peer, header, trusted)).toBe(client);
        },
      ),
    );
  });

  it('law: it is an address in its one spelling, or unknown', () => {
    fc.assert(
      fc.property(attackerText, fc.array(attackerText), (peer, hops) => {
        const address = clientAddress(peer, hops.join(','), trusted);
        if (address !== unknownAddress) expect(clientAddress(address, undefined, [])).toBe(address);
      }),
    );
  });

  it.each([
    ['no header', '10.0.0.1', undefined, '10.0.0.1'],
    ['an empty header', '10.0.0.1', '', '10.0.0.1'],
    ['only proxies', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['a hop that is none', '10.0.0.1', '203.0.113.9, _hidden', unknownAddress],
    ['an empty hop', '10.0.0.1', '203.0.113.9,', unknownAddress],
    ['a hop with a port', '10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
    ['an IPv6 hop with a port', '10.0.0.1', '[2001:DB8::0001]:4711', '2001:db8::1'],
    ['an IPv4-mapped hop', 'fd00::1', '::ffff:203.0.113.9', '203.0.113.9'],
    ['an IPv4-mapped proxy', '::ffff:10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['a zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['a socket that is gone', undefined, '203.0.113.9', unknownAddress],
  ])('%s', (_name, peer, header, expected) => expect(clientAddress(peer, header, trusted)).toBe(expected));
});
