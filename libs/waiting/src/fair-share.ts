interface Shared {
  /** How many there are. */
  readonly all: number;
  /** How many of them nobody holds. */
  readonly free: number;
  /** What one holder may have while half of them are free. */
  readonly most: number;
}

/**
 * How many one holder may have of something that many share: whoever has fewer may take one more. Below a half, what
 * is free counts by its cube, so that many who each take all they can, such as the 200 teams that a user may have, are
 * stopped one after the other before it is used up. While one is free, whoever has none may take it.
 *
 * A share that falls in proportion, such as "no more than are free", is used up by a dozen (ADR 69).
 */
export function fairShare({ all, free, most }: Shared): number {
  if (free <= 0) return 0;
  return Math.max(1, Math.floor(most * Math.min(1, (2 * free) / all) ** 3));
}
