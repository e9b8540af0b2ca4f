import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Demand } from './buckets.js';
import { MemoryBuckets } from './memory-buckets.js';

const demand = (key: string, capacity: number, name = 'key'): Demand => ({
  name,
  key,
  capacity,
  refillMs: 1_000 * capacity,
});

describe('buckets in memory', () => {
  it('state hits and times in the terms of a throttler storage', async () => {
    const buckets = new MemoryBuckets(() => 0);
    const take = () => buckets.increment('a', 2_000, 2, 0, 'key');
    expect(await take()).toEqual({ totalHits: 1, timeToExpire: 1, isBlocked: false, timeToBlockExpire: 0 });
    expect(await take()).toEqual({ totalHits: 2, timeToExpire: 2, isBlocked: false, timeToBlockExpire: 0 });
    expect(await take()).toEqual({ totalHits: 3, timeToExpire: 2, isBlocked: true, timeToBlockExpire: 1 });
  });

  it('law: of several buckets each is taken from or none, and what is returned is as if never taken', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.array(fc.boolean(), { maxLength: 20 }), async (capacities, gives) => {
        const buckets = new MemoryBuckets(() => 0);
        const demands = capacities.map((capacity, at) => demand(`bucket ${at}`, capacity));
        let inUse = 0;
        for (const gives_ of gives) {
          if (gives_ && inUse > 0) {
            for (const one of demands) await buckets.decrement(one);
            inUse -= 1;
            continue;
          }
          const records = await buckets.incrementAll(demands);
          const isGranted = records.every(({ isBlocked }) => !isBlocked);
          expect(isGranted).toBe(inUse < Math.min(...capacities));
          if (isGranted) inUse += 1;
          for (const [at, { totalHits, isBlocked }] of records.entries()) {
            expect(Math.min(totalHits, capacities[at] ?? 0)).toBe(inUse);
            expect(isBlocked).toBe(!isGranted && capacities[at] === inUse);
          }
        }
      }),
    );
  });

  it('hold no token more than they may, however many are returned', async () => {
    const buckets = new MemoryBuckets(() => 0);
    const one = demand('a', 1);
    for (let count = 0; count < 3; count++) await buckets.decrement(one);
    expect((await buckets.incrementAll([one]))[0]?.isBlocked).toBe(false);
    expect((await buckets.incrementAll([one]))[0]?.isBlocked).toBe(true);
  });

  it('never hold more buckets of a limit than they may: full ones go first, then the oldest', async () => {
    let nowMs = 0;
    const buckets = new MemoryBuckets(() => nowMs, 10);
    const take = (key: string) => buckets.increment(key, 1_000, 1, 0, 'anonymous');
    for (let index = 0; index < 10; index++) await take(`early ${index}`);
    nowMs = 1_000;
    await take('late');
    expect(buckets.size).toBe(1);
    for (let index = 0; index < 100; index++) await take(`flood ${index}`);
    expect(buckets.size).toBeLessThanOrEqual(10);
    expect((await take('flood 99')).isBlocked).toBe(true);
  });

  it('of one limit are not pushed out by a flood on another', async () => {
    const buckets = new MemoryBuckets(() => 0, 10);
    await buckets.increment('caller', 1_000, 1, 0, 'key');
    for (let index = 0; index < 1_000; index++) await buckets.increment(`address ${index}`, 1_000, 1, 0, 'anonymous');
    expect((await buckets.increment('caller', 1_000, 1, 0, 'key')).isBlocked).toBe(true);
  });
});
