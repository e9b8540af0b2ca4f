/** A bucket holds `capacity` tokens and fills from empty in `refillMs`. */
export interface BucketSize {
  capacity: number;
  refillMs: number;
}

export interface Taken {
  granted: boolean;
  /** The bucket's whole state: when it will be full again. In the past or absent means full. */
  fullAtMs: number;
  /** Whole tokens left. */
  remaining: number;
  /** Until a token is there again; 0 where one was granted. */
  retryAfterMs: number;
}

/** Sums of intervals such as 60000/7 ms are not exact; a token is not refused for that. */
const toleranceMs = 1e-6;

/**
 * Takes one token from a bucket that is full at `fullAtMs`, or refuses and leaves it as it is. In any span of t
 * milliseconds at most capacity + t × capacity / refillMs tokens are granted. Kept as one instant (the generic cell
 * rate algorithm, ITU-T I.371), so that a store needs one number a bucket and may forget it once it has passed.
 */
export function takeToken(fullAtMs: number | undefined, { capacity, refillMs }: BucketSize, nowMs: number): Taken {
  const tokenMs = refillMs / capacity;
  // A clock that was set back, or a replica's that runs ahead, must not lock the bucket for longer than it takes to
  // fill.
  const before = Math.min(Math.max(fullAtMs ?? nowMs, nowMs), nowMs + refillMs);
  const after = before + tokenMs;
  const granted = after - nowMs <= refillMs + toleranceMs;
  const full = granted ? after : before;
  return {
    granted,
    fullAtMs: full,
    remaining: Math.max(0, Math.floor((nowMs + refillMs - full + toleranceMs) / tokenMs)),
    retryAfterMs: granted ? 0 : after - nowMs - refillMs,
  };
}

/** Like `takeToken`, but takes none: the bucket as it is, and whether a token would be granted. */
export function peekToken(fullAtMs: number | undefined, size: BucketSize, nowMs: number): Taken {
  const taken = takeToken(fullAtMs, size, nowMs);
  if (!taken.granted) return taken;
  return { ...taken, fullAtMs: taken.fullAtMs - size.refillMs / size.capacity, remaining: taken.remaining + 1 };
}

/** When a bucket is full after a token that was taken of it is returned. */
export function returnToken(fullAtMs: number, { capacity, refillMs }: BucketSize): number {
  return fullAtMs - refillMs / capacity;
}
