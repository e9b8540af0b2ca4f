import type { Pace } from '@atoll/waiting';

/**
 * The buckets of a report cut into elementary intervals, in each of which every price is one: at the prices' changes,
 * and at the moment up to which usage is counted, after which there is nothing to add up.
 */
export interface Grid {
  /**
   * Epoch milliseconds, ascending: where each interval starts, and where the last one ends. Fewer than two: nothing is
   * counted.
   */
  readonly bounds: readonly number[];
  /** Of each interval. */
  readonly lengthsMs: readonly number[];
  /** Of each interval: the bucket that it is part of. */
  readonly buckets: readonly number[];
  /** Those behind the last bound included. */
  readonly bucketCount: number;
}

/** Cuts the buckets between `bucketBounds` at `cuts`, both in epoch milliseconds, and ends at `upToMs`. */
export async function gridOf(
  bucketBounds: readonly number[],
  cuts: readonly number[],
  upToMs: number,
  pace: Pace,
): Promise<Grid> {
  const bounds = await cutAt(bucketBounds, cuts, upToMs, pace);
  const lengthsMs: number[] = [];
  const buckets: number[] = [];
  let bucket = 0;
  for (let interval = 0; interval + 1 < bounds.length; interval += 1) {
    const [from = 0, to = 0] = [bounds[interval], bounds[interval + 1]];
    while ((bucketBounds[bucket + 1] ?? Infinity) <= from) bucket += 1;
    lengthsMs.push(to - from);
    buckets.push(bucket);
    if (pace.isFull()) await pace.turn();
  }
  return { bounds, lengthsMs, buckets, bucketCount: bucketBounds.length - 1 };
}

async function cutAt(
  bucketBounds: readonly number[],
  cuts: readonly number[],
  upToMs: number,
  pace: Pace,
): Promise<number[]> {
  const startMs = bucketBounds[0] ?? upToMs;
  const endMs = Math.min(bucketBounds.at(-1) ?? upToMs, upToMs);
  if (startMs >= endMs) return [];
  const inside = cuts.filter((cut) => cut > startMs && cut < endMs);
  const inOrder = await pace.toSorted([...new Set(inside)], (a, b) => a - b);
  const bounds: number[] = [];
  let next = 0;
  for (const bound of bucketBounds) {
    if (bound >= endMs) break;
    for (let cut = inOrder[next]; cut !== undefined && cut <= bound; cut = inOrder[++next])
      if (cut < bound) bounds.push(cut);
    bounds.push(bound);
    if (pace.isFull()) await pace.turn();
  }
  return [...bounds, ...inOrder.slice(next), endMs];
}
