import type { ThrottlerStorage } from '@nestjs/throttler';
import { peekToken, takeToken, type BucketSize, type Taken } from './token-bucket.js';

/** One bucket that a request takes a token of. */
export interface Demand extends BucketSize {
  /** The limit's name, as in the `RateLimit` headers. */
  name: string;
  /** The bucket's: the limit's name and its holder. */
  key: string;
}

/** What a throttler storage returns; times in seconds, rounded up. */
export type BucketRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * Token buckets as a storage of `@nestjs/throttler`: `limit` is a bucket's capacity, `ttl` the milliseconds in which it
 * fills. `increment` takes one token of one bucket.
 */
export interface Buckets extends ThrottlerStorage {
  /**
   * Takes a token of each bucket, or of none where one of them is empty; the records are in the order of the demands.
   */
  incrementAll(demands: readonly Demand[]): Promise<BucketRecord[]>;
  /** Returns a token that was taken. */
  decrement(demand: Demand): Promise<void>;
}

/**
 * A taken token in the terms of `@nestjs/throttler`: hits are tokens in use, and the time to expire is the time until
 * the bucket is full.
 */
function toRecord(taken: Taken, { capacity }: BucketSize, nowMs: number): BucketRecord {
  return {
    totalHits: capacity - taken.remaining + (taken.granted ? 0 : 1),
    timeToExpire: Math.max(0, Math.ceil((taken.fullAtMs - nowMs) / 1000)),
    isBlocked: !taken.granted,
    timeToBlockExpire: Math.ceil(taken.retryAfterMs / 1000),
  };
}

/** The result of taking a token of one bucket: what the caller is told, and when the bucket will be full. */
export function incremented(
  fullAtMs: number | undefined,
  size: BucketSize,
  nowMs: number,
): { record: BucketRecord; fullAtMs: number } {
  const taken = takeToken(fullAtMs, size, nowMs);
  return { record: toRecord(taken, size, nowMs), fullAtMs: taken.fullAtMs };
}

/** The record of a bucket of which nothing is taken; blocked where a token would be refused. */
export function peeked(fullAtMs: number | undefined, size: BucketSize, nowMs: number): BucketRecord {
  return toRecord(peekToken(fullAtMs, size, nowMs), size, nowMs);
}
