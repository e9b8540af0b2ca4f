import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { peekToken, takeToken, type BucketSize } from './token-bucket.js';

const sizes = fc.record({ capacity: fc.integer({ min: 1, max: 100 }), refillMs: fc.integer({ min: 1, max: 100_000 }) });
const gapsMs = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 200 });

/** The instants at which requests that come after the given gaps are granted. */
function grants(size: BucketSize, gaps: readonly number[]): number[] {
  const granted: number[] = [];
  let fullAtMs: number | undefined;
  let nowMs = 0;
  for (const gap of gaps) {
    nowMs += gap;
    const taken = takeToken(fullAtMs, size, nowMs);
    fullAtMs = taken.fullAtMs;
    if (taken.granted) granted.push(nowMs);
  }
  return granted;
}

describe('a token bucket', () => {
  it('law: in any window of t milliseconds it grants at most capacity + t × capacity / refillMs', () => {
    fc.assert(
      fc.property(sizes, gapsMs, (size, gaps) => {
        const granted = grants(size, gaps);
        granted.forEach((from, first) =>
          granted.slice(first).forEach((to, further) => {
            const allowed = size.capacity + ((to - from) * size.capacity) / size.refillMs;
            expect(further + 1).toBeLessThanOrEqual(allowed + 1e-6);
          }),
        );
      }),
    );
  });

  it('law: a caller that waits as long as it says is granted, and not a millisecond earlier', () => {
    fc.assert(
      fc.property(sizes, gapsMs, (size, gaps) => {
        const nowMs = gaps.reduce((sum, gap) => sum + gap, 0);
        let fullAtMs: number | undefined;
        let taken = takeToken(fullAtMs, size, nowMs);
        while (taken.granted) {
          fullAtMs = taken.fullAtMs;
          taken = takeToken(fullAtMs, size, nowMs);
        }
        expect(takeToken(fullAtMs, size, nowMs + taken.retryAfterMs).granted).toBe(true);
        if (taken.retryAfterMs > 1)
          expect(takeToken(fullAtMs, size, nowMs + taken.retryAfterMs - 1).granted).toBe(false);
      }),
    );
  });

  it('law: a look into it says what taking would, and changes nothing', () => {
    fc.assert(
      fc.property(sizes, gapsMs, (size, gaps) => {
        let fullAtMs: number | undefined;
        let nowMs = 0;
        for (const gap of gaps) {
          nowMs += gap;
          const [seen, taken] = [peekToken(fullAtMs, size, nowMs), takeToken(fullAtMs, size, nowMs)];
          expect([seen.granted, seen.retryAfterMs, seen.remaining]).toEqual([
            taken.granted,
            taken.retryAfterMs,
            taken.remaining + (taken.granted ? 1 : 0),
          ]);
          expect(seen.fullAtMs).toBeCloseTo(Math.max(fullAtMs ?? nowMs, nowMs), 6);
          fullAtMs = taken.fullAtMs;
        }
      }),
    );
  });

  it('grants its whole capacity at once, counting down, and then one for each interval', () => {
    const size = { capacity: 3, refillMs: 3_000 };
    let fullAtMs: number | undefined;
    const remaining = [0, 0, 0, 0, 999, 1_000, 1_000].map((nowMs) => {
      const taken = takeToken(fullAtMs, size, nowMs);
      fullAtMs = taken.fullAtMs;
      return taken.granted ? taken.remaining : 'refused';
    });
    expect(remaining).toEqual([2, 1, 0, 'refused', 'refused', 0, 'refused']);
  });

  it('is not locked by a clock that was set back', () => {
    const size = { capacity: 1, refillMs: 1_000 };
    const { fullAtMs } = takeToken(undefined, size, 1_000_000);
    expect(takeToken(fullAtMs, size, 0)).toMatchObject({ granted: false, retryAfterMs: 1_000 });
  });
});
