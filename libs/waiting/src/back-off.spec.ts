import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { backOffMs, spreadMs } from './back-off.js';

const limits = { firstMs: fc.integer({ min: 1, max: 60_000 }), maxMs: fc.integer({ min: 1, max: 3_600_000 }) };
const terms = { factor: fc.integer({ min: 1, max: 5 }), jitter: fc.double({ min: 0, max: 1, noNaN: true }) };
const backOff = fc.record({ ...limits, ...terms }, { requiredKeys: ['firstMs', 'maxMs'] });
const failures = fc.integer({ min: 1, max: 10_000 });

/** The wait with the least, or with the most, taken off by chance. */
function withChance(value: number, work: () => number): number {
  const random = jest.spyOn(Math, 'random').mockReturnValue(value);
  const result = work();
  random.mockRestore();
  return result;
}

describe('law: the wait after so many failures', () => {
  it('is the first one times the factor with each failure, the longest one at most, less what chance may take off', () => {
    fc.assert(
      fc.property(backOff, failures, (given, count) => {
        const { firstMs, maxMs, factor = 2, jitter = 0.5 } = given;
        const whole = Math.min(maxMs, firstMs * factor ** (count - 1));
        const least = Math.round(whole * (1 - jitter));
        expect(withChance(0, () => backOffMs(given, count))).toBe(whole);
        expect(withChance(1, () => backOffMs(given, count))).toBe(least);
        const wait = backOffMs(given, count);
        expect(wait).toBeGreaterThanOrEqual(least);
        expect(wait).toBeLessThanOrEqual(whole);
        expect(Number.isInteger(wait)).toBe(true);
      }),
    );
  });

  it('is never shorter after more failures, by the same chance', () => {
    fc.assert(
      fc.property(backOff, failures, fc.double({ min: 0, max: 1, noNaN: true }), (given, count, chance) => {
        const [one, next] = [count, count + 1].map((each) => withChance(chance, () => backOffMs(given, each)));
        expect(next).toBeGreaterThanOrEqual(one ?? NaN);
      }),
    );
  });

  it('differs between rows that failed at once', () => {
    const waits = Array.from({ length: 50 }, () => backOffMs({ firstMs: 10_000, maxMs: 10_000 }, 1));
    expect(new Set(waits).size).toBeGreaterThan(10);
  });
});

it('law: what is spread comes after nine tenths of its period to all of it, by chance', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3_600_000 }), (periodMs) => {
      expect(withChance(0, () => spreadMs(periodMs))).toBe(periodMs);
      expect(withChance(1, () => spreadMs(periodMs))).toBe(Math.round(periodMs * 0.9));
    }),
  );
});
