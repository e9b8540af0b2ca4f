import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SealBroken, Sealer, UnknownSealKey } from './sealer.js';

const keys = Sealer.createKeys('k1');
const sealer = new Sealer(keys);

describe('a sealed value', () => {
  it('law: opens to what was sealed, for the same purpose', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.string(), (secret, purpose) => {
        expect(sealer.open(sealer.seal(secret, purpose), purpose)).toEqual(Buffer.from(secret));
      }),
    );
  });

  it('law: does not open for another purpose, nor with any character changed', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.nat(), (secret, purpose, other, at) => {
        const sealed = sealer.seal(secret, purpose);
        if (other !== purpose) expect(() => sealer.open(sealed, other)).toThrow(SealBroken);
        const place = at % sealed.length;
        const altered = sealed.slice(0, place) + (sealed[place] === 'A' ? 'B' : 'A') + sealed.slice(place + 1);
        const opened = attempt(() => sealer.open(altered, purpose));
        // The last character of base64url may carry bits that mean nothing.
        if (opened !== undefined)
          expect([place, opened.toString()]).toEqual([sealed.length - 1, Buffer.from(secret).toString()]);
      }),
    );
  });

  it('differs each time, and shows nothing of the secret', () => {
    const [one, other] = [sealer.seal('hunter2', 'a'), sealer.seal('hunter2', 'a')];
    expect(one).not.toBe(other);
    expect(one).not.toContain(Buffer.from('hunter2').toString('base64url'));
  });

  it('that another key sealed under the same id does not open, in words that name the setting and the id', () => {
    const other = new Sealer(Sealer.createKeys('k1'));
    expect(() => other.open(sealer.seal('hunter2', 'pods.ssh_host_key'), 'pods.ssh_host_key')).toThrow(
      'The sealed value for pods.ssh_host_key cannot be opened: ATOLL_SEAL_KEYS has another key under the id "k1" than the one that sealed it, or the value was altered.',
    );
  });

  it('refuses what is not sealed at all', () => {
    for (const text of ['', 'hunter2', 'v1.k1.', 'v2.k1.AAAA', 'v1.k1.AAAA.AAAA', `v1..${'A'.repeat(60)}`]) {
      expect(() => sealer.open(text, 'a')).toThrow(SealBroken);
    }
  });
});

describe('keys', () => {
  it('are replaced one after the other: the first seals, all open', () => {
    const old = sealer.seal('hunter2', 'a');
    const rotated = new Sealer(`${Sealer.createKeys('k2')}, ${keys}`);
    expect(rotated.open(old, 'a').toString()).toBe('hunter2');
    expect([old, rotated.seal('hunter2', 'a')].map((sealed) => sealed.startsWith(rotated.currentPrefix))).toEqual([
      false,
      true,
    ]);
    expect(() => sealer.open(rotated.seal('hunter2', 'a'), 'a')).toThrow(UnknownSealKey);
  });

  it('are refused by their position, without their value', () => {
    for (const bad of ['', 'k1', 'k1:c2hvcnQ=', `${keys},k2:c2hvcnQ=`, `${keys},${keys}`, `a b:${keys.slice(3)}`]) {
      const message = attempt(() => new Sealer(bad)) ?? 'refused';
      expect(message).toBe('refused');
      expect(() => new Sealer(bad)).not.toThrow('c2hvcnQ=');
    }
    expect(() => new Sealer(`${keys},k2:c2hvcnQ=`)).toThrow('entry 2');
  });
});

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
