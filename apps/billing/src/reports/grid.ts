/**
 * The buckets of a report cut into elementary intervals, in each of which every price is one: at the prices' changes, and at the moment up to
 * which usage is counted, after which there is nothing to add up.
 */
export interface Grid {
  /** Epoch milliseconds, ascending: where each interval starts, and where the last one ends. Fewer than two: nothing is counted. */
  readonly bounds: readonly number[];
  /** Of each interval. */
  readonly lengthsMs: readonly bigint[];
  /** Of each interval: the bucket that it is part of. */
  readonly buckets: readonly number[];
  /** Those behind the last bound included. */
  readonly bucketCount: number;
}

/** Cuts the buckets between `bucketBounds` at `cuts`, both in epoch milliseconds, and ends at `upToMs`. */
export function gridOf(bucketBounds: readonly number[], cuts: Iterable<number>, upToMs: number): Grid {
  const bounds = cutAt(bucketBounds, cuts, upToMs);
  const lengthsMs: bigint[] = [];
  const buckets: number[] = [];
  let bucket = 0;
  for (let interval = 0; interval + 1 < bounds.length; interval += 1) {
    const [from = 0, to = 0] = [bounds[interval], bounds[interval + 1]];
    while ((bucketBounds[bucket + 1] ?? Infinity) <= from) bucket += 1;
    lengthsMs.push(BigInt(to - from));
    buckets.push(bucket);
  }
  return { bounds, lengthsMs, buckets, bucketCount: bucketBounds.length - 1 };
}

function cutAt(bucketBounds: readonly number[], cuts: Iterable<number>, upToMs: number): number[] {
  const startMs = bucketBounds[0] ?? upToMs;
  const endMs = Math.min(bucketBounds.at(-1) ?? upToMs, upToMs);
  if (startMs >= endMs) return [];
  const bounds = bucketBounds.filter((bound) => bound < endMs).concat(endMs);
  const inside = [...cuts].filter((cut) => cut > startMs && cut < endMs);
  return inside.length === 0 ? bounds : [...new Set([...bounds, ...inside])].sort((a, b) => a - b);
}
