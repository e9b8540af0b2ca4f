import { describe, expect, it } from '@jest/globals';
import {
  array,
  assert,
  asyncProperty,
  bigInt,
  boolean,
  constantFrom,
  oneof,
  property,
  type Arbitrary,
} from 'fast-check';
import { Pace, Turns } from '@atoll/waiting';
import { divideHalfUp, largestRemainder } from './rounding.js';

const positive = bigInt({ min: 1n, max: 10n ** 25n });

describe('division, a half upwards', () => {
  it('is to the nearest whole number, of two equally near the greater', () => {
    expect([1n, 2n, 3n, 5n, -1n, -2n, -3n, -5n].map((numerator) => divideHalfUp(numerator, 2n))).toEqual([
      1n,
      1n,
      2n,
      3n,
      0n,
      -1n,
      -1n,
      -2n,
    ]);
    assert(
      property(bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), positive, (numerator, denominator) => {
        const twiceTheRest = 2n * (numerator - divideHalfUp(numerator, denominator) * denominator);
        expect(twiceTheRest >= -denominator && twiceTheRest < denominator).toBe(true);
      }),
    );
  });
});

interface Parts {
  wholes: bigint[];
  rests: number[];
  denominator: bigint;
  /** The exact sum, rounded down or up. */
  total: bigint;
}

/** With ties and zeros among them, few and many. */
const someParts: Arbitrary<Parts> = constantFrom(1n, 3n, 7n, 3_600_000_000_000_000n, 2n ** 53n - 1n).chain(
  (denominator) => {
    const numerator = oneof(
      constantFrom(0n, 1n, denominator, denominator / 3n),
      bigInt({ min: 0n, max: 4n * denominator }),
    );
    return array(numerator, { minLength: 1, maxLength: 120 }).chain((numerators) =>
      boolean().map((isUp) => {
        const exact = numerators.reduce((sum, one) => sum + one, 0n);
        return {
          wholes: numerators.map((one) => one / denominator),
          // Below the denominator, and so exact.
          rests: numerators.map((one) => Number(one % denominator)),
          denominator,
          total: exact / denominator + (isUp && exact % denominator > 0n ? 1n : 0n),
        };
      }),
    );
  },
);
const round = (total: bigint, wholes: bigint[], rests: number[]) =>
  largestRemainder(total, wholes, rests, new Pace(new Turns()));
const rounded = ({ total, wholes, rests }: Parts) => round(total, wholes, rests);

describe('rounding by largest remainder', () => {
  it('gives what is missing to the largest remainders, of equal ones to the earlier', async () => {
    expect(await round(1n, [0n, 0n, 0n], [1, 1, 1])).toEqual([1n, 0n, 0n]);
    expect(await round(12n, [5n, 3n, 2n], [1, 2, 2])).toEqual([5n, 4n, 3n]);
    expect(await round(11n, [5n, 3n, 2n], [1, 2, 2])).toEqual([5n, 4n, 2n]);
    expect(await round(0n, [], [])).toEqual([]);
  });

  it('adds up, with each part rounded down or up, and one that was whole as it was', async () => {
    await assert(
      asyncProperty(someParts, async (parts) => {
        const shown = await rounded(parts);
        expect(shown.reduce((sum, one) => sum + one, 0n)).toBe(parts.total);
        for (const [n, one] of shown.entries()) {
          const more = one - parts.wholes[n]!;
          expect(more === 0n || (more === 1n && parts.rests[n]! > 0n)).toBe(true);
        }
      }),
    );
  });

  it('never favours a smaller remainder, nor the later of equal ones', async () => {
    await assert(
      asyncProperty(someParts, async (parts) => {
        const shown = await rounded(parts);
        const isUp = (n: number) => shown[n]! > parts.wholes[n]!;
        const inOrder = [...parts.rests.keys()].sort((a, b) =>
          parts.rests[a]! === parts.rests[b]! ? a - b : parts.rests[a]! > parts.rests[b]! ? -1 : 1,
        );
        const ups = inOrder.map(isUp);
        expect(ups.lastIndexOf(true)).toBeLessThan(ups.includes(false) ? ups.indexOf(false) : ups.length);
      }),
    );
  });

  it('takes no other total than the exact one rounded', async () => {
    for (const total of [-1n, 0n, 4n, 9n]) await expect(round(total, [1n, 1n], [1, 0])).rejects.toThrow(RangeError);
    expect(await round(3n, [1n, 1n], [1, 0])).toEqual([2n, 1n]);
  });

  it('rounds tens of thousands of parts as it rounds few', async () => {
    const rests = Array.from({ length: 20_000 }, (_, n) => (n * 7_919) % 1_000);
    const wholes = rests.map(() => 0n);
    const shown = await round(5_000n, wholes, rests);
    const inOrder = [...rests.keys()].sort((a, b) => rests[b]! - rests[a]! || a - b);
    expect(inOrder.map((n) => shown[n])).toEqual(rests.map((_, n) => (n < 5_000 ? 1n : 0n)));
  });
});
