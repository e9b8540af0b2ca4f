import { describe, expect, it } from '@jest/globals';
import { array, assert, bigInt, boolean, constantFrom, oneof, property, type Arbitrary } from 'fast-check';
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
  rests: bigint[];
  denominator: bigint;
  /** The exact sum, rounded down or up. */
  total: bigint;
}

/** With ties and zeros among them, few and many. */
const someParts: Arbitrary<Parts> = constantFrom(1n, 3n, 7n, 3_600_000_000_000_000n, 2n ** 64n - 1n).chain((denominator) => {
  const numerator = oneof(constantFrom(0n, 1n, denominator, denominator / 3n), bigInt({ min: 0n, max: 4n * denominator }));
  return array(numerator, { minLength: 1, maxLength: 120 }).chain((numerators) =>
    boolean().map((isUp) => {
      const exact = numerators.reduce((sum, one) => sum + one, 0n);
      return {
        wholes: numerators.map((one) => one / denominator),
        rests: numerators.map((one) => one % denominator),
        denominator,
        total: exact / denominator + (isUp && exact % denominator > 0n ? 1n : 0n),
      };
    }),
  );
});
const rounded = ({ total, wholes, rests }: Parts) => largestRemainder(total, wholes, rests);

describe('rounding by largest remainder', () => {
  it('gives what is missing to the largest remainders, of equal ones to the earlier', () => {
    expect(largestRemainder(1n, [0n, 0n, 0n], [1n, 1n, 1n])).toEqual([1n, 0n, 0n]);
    expect(largestRemainder(12n, [5n, 3n, 2n], [1n, 2n, 2n])).toEqual([5n, 4n, 3n]);
    expect(largestRemainder(11n, [5n, 3n, 2n], [1n, 2n, 2n])).toEqual([5n, 4n, 2n]);
    expect(largestRemainder(0n, [], [])).toEqual([]);
  });

  it('adds up, with each part rounded down or up, and one that was whole as it was', () => {
    assert(
      property(someParts, (parts) => {
        const shown = rounded(parts);
        expect(shown.reduce((sum, one) => sum + one, 0n)).toBe(parts.total);
        for (const [n, one] of shown.entries()) {
          const more = one - parts.wholes[n]!;
          expect(more === 0n || (more === 1n && parts.rests[n]! > 0n)).toBe(true);
        }
      }),
    );
  });

  it('never favours a smaller remainder, nor the later of equal ones', () => {
    assert(
      property(someParts, (parts) => {
        const shown = rounded(parts);
        const isUp = (n: number) => shown[n]! > parts.wholes[n]!;
        const inOrder = [...parts.rests.keys()].sort((a, b) =>
          parts.rests[a]! === parts.rests[b]! ? a - b : parts.rests[a]! > parts.rests[b]! ? -1 : 1,
        );
        const ups = inOrder.map(isUp);
        expect(ups.lastIndexOf(true)).toBeLessThan(ups.includes(false) ? ups.indexOf(false) : ups.length);
      }),
    );
  });

  it('takes no other total than the exact one rounded', () => {
    for (const total of [-1n, 0n, 4n, 9n]) expect(() => largestRemainder(total, [1n, 1n], [1n, 0n])).toThrow(RangeError);
    expect(largestRemainder(3n, [1n, 1n], [1n, 0n])).toEqual([2n, 1n]);
  });
});
