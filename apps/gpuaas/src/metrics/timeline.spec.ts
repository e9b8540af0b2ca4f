import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { nowMs } from './metrics-fixture.js';
import { timeline } from './timeline.js';

describe('the instants of a query', () => {
  it('law: they lie within the span, end now, and are a minute or more apart and no more than asked for', () => {
    const property = fc.property(
      fc.nat({ max: 31 * 86_400_000 }),
      fc.nat({ max: 999 }),
      fc.integer({ min: 1, max: 600 }),
      (spanMs, ms, steps) => {
        const { startS, endS, stepS } = timeline(nowMs + ms - spanMs, nowMs + ms, steps);
        expect(endS).toBe(Math.floor(nowMs / 1000));
        expect(stepS).toBeGreaterThanOrEqual(60);
        expect((endS - startS) % stepS).toBe(0);
        expect((endS - startS) / stepS).toBeLessThanOrEqual(steps);
        if (spanMs >= 1_000) expect(startS * 1000).toBeGreaterThanOrEqual(nowMs + ms - spanMs);
      },
    );
    fc.assert(property);
  });
});
