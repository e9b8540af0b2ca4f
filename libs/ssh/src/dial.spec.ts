import { describe, expect, it } from '@jest/globals';
import { dial, isDiallable } from './dial.js';

const strict = { allowLoopback: false };
const local = { allowLoopback: true };

describe('an address', () => {
  it('may be dialled where it is a host’s own, private networks included', () => {
    for (const address of ['9.9.9.9', '10.1.2.3', '192.168.0.9', '100.64.0.1', '2620:fe::fe', 'fd12::7']) {
      expect([address, isDiallable(address, strict)]).toEqual([address, true]);
    }
  });

  it('of loopback and link-local is dialled only where that is allowed', () => {
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '169.254.7.7', 'fe80::1', '::ffff:127.0.0.1', '::ffff:7f00:1']) {
      expect([address, isDiallable(address, strict), isDiallable(address, local)]).toEqual([address, false, true]);
    }
  });

  it('that gives away a machine’s credentials is never dialled, in whatever form', () => {
    const forms = [
      '169.254.169.254',
      '::ffff:169.254.169.254',
      '::ffff:a9fe:a9fe',
      '64:ff9b::a9fe:a9fe',
      '2002:a9fe:a9fe::',
      'fd00:ec2::254',
      '100.100.100.200',
    ];
    for (const address of forms) expect([address, isDiallable(address, local)]).toEqual([address, false]);
  });

  it('that is no host’s is never dialled', () => {
    for (const address of ['0.0.0.0', '255.255.255.255', '224.0.0.1', 'ff02::1', '::', 'localhost', '1', '']) {
      expect([address, isDiallable(address, local)]).toEqual([address, false]);
    }
  });
});

describe('dialling a name', () => {
  it('looks at the addresses that it leads to', async () => {
    await expect(dial('localhost', 1, strict, AbortSignal.timeout(5_000))).rejects.toMatchObject({
      kind: 'address_forbidden',
      isPermanent: true,
    });
    await expect(dial('localhost', 1, local, AbortSignal.timeout(5_000))).rejects.toMatchObject({ kind: 'refused' });
  });

  it('ends with its signal', async () => {
    await expect(dial('127.0.0.1', 1, local, AbortSignal.abort())).rejects.toMatchObject({ kind: 'timeout' });
  });
});
