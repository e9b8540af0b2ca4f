import { describe, expect, it } from '@jest/globals';
import { MemoryBuckets } from './memory-buckets.js';

describe('buckets in memory', () => {
  it('tell hits and times in the terms of a throttler storage', async () => {
    const buckets = new MemoryBuckets(() => 0);
    expect(await buckets.increment('a', 2_000, 2)).toEqual({ totalHits: 1, timeToExpire: 1, isBlocked: false, timeToBlockExpire: 0 });
    expect(await buckets.increment('a', 2_000, 2)).toEqual({ totalHits: 2, timeToExpire: 2, isBlocked: false, timeToBlockExpire: 0 });
    expect(await buckets.increment('a', 2_000, 2)).toEqual({ totalHits: 3, timeToExpire: 2, isBlocked: true, timeToBlockExpire: 1 });
  });

  it('never hold more buckets than they may: full ones go first, then the oldest', async () => {
    let nowMs = 0;
    const buckets = new MemoryBuckets(() => nowMs, 10);
    for (let index = 0; index < 10; index++) await buckets.increment(`early ${index}`, 1_000, 1);
    nowMs = 1_000;
    await buckets.increment('late', 1_000, 1);
    expect(buckets.size).toBe(1);
    for (let index = 0; index < 100; index++) await buckets.increment(`flood ${index}`, 1_000, 1);
    expect(buckets.size).toBeLessThanOrEqual(10);
    expect((await buckets.increment('flood 99', 1_000, 1)).isBlocked).toBe(true);
  });
});
