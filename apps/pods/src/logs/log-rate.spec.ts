import { expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { LogRate } from './log-rate.js';

it('law: in whatever order lines of a minute come, a pod writes no more than 10 s of its rate and what passed between the first and the last', () => {
  const seconds = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 100, size: 'max' });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3 }), seconds, (linesPerSecond, all) => {
      const rate = new LogRate({ linesPerSecond, bytesPerSecond: 1_000 });
      const taken = all.filter((at) => rate.takes(1_000_000 + at * 1_000, 1));
      const passed = Math.max(...all) - Math.min(...all);
      expect(taken.length).toBeLessThanOrEqual(linesPerSecond * (10 + passed));
    }),
    runs(100),
  );
});
