import type { ThrottlerStorage } from '@nestjs/throttler';
import type { BucketSize, Taken } from './token-bucket.js';

/**
 * What holds the buckets, as a storage of `@nestjs/throttler`: `limit` is a bucket's capacity, `ttl` the milliseconds in which it fills. Its
 * guard and its module are left out: a guard sees neither unmatched routes nor malformed URLs, and they count too.
 */
export const bucketStore = Symbol('bucketStore');

export interface Buckets extends ThrottlerStorage {
  /** The bucket as it is; blocked where it would refuse. */
  peek(key: string, ttl: number, limit: number): Promise<BucketRecord>;
}

/** What a throttler storage answers; in seconds, rounded up. */
export type BucketRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/** A taken token in the terms of `@nestjs/throttler`: hits are tokens in use, the time to expire is the time until the bucket is full. */
export function toRecord(taken: Taken, { capacity }: BucketSize, nowMs: number): BucketRecord {
  return {
    totalHits: capacity - taken.remaining + (taken.granted ? 0 : 1),
    timeToExpire: Math.max(0, Math.ceil((taken.fullAtMs - nowMs) / 1000)),
    isBlocked: !taken.granted,
    timeToBlockExpire: Math.ceil(taken.retryAfterMs / 1000),
  };
}
