import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import { Pace, Turns } from '@atoll/waiting';
import { readChanges } from './quantity-changes.js';

const nanoPerUnit = 1_000_000_000n;
const upTo = (digits: number) => fc.bigInt({ min: -(10n ** BigInt(digits)), max: 10n ** BigInt(digits) });
const whole = fc.oneof(...[3, 15, 16, 18, 30].map(upTo));
const entry = fc.record({ interval: fc.integer({ min: 1, max: 20 }), added: whole, units: whole, nano: whole });

describe('the changes of a quantity', () => {
  it('law: are read from text exactly, however long the numbers are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(entry, { selector: ({ interval }) => interval, maxLength: 20 }),
        async (entries) => {
          const text = entries
            .map(({ interval, added, units, nano }) => `${interval} ${added} ${units} ${nano}`)
            .join(' ');
          const { deltasNano, momentsNano } = await readChanges(text, 20, new Pace(new Turns()));
          for (let interval = 1; interval <= 20; interval += 1) {
            const one = entries.find((each) => each.interval === interval);
            expect(deltasNano[interval - 1]).toBe(one?.added);
            expect(momentsNano[interval - 1]).toBe(one && one.units * nanoPerUnit + one.nano);
          }
        },
      ),
      runs(100),
    );
  });
});
