/** Waits between tries, in milliseconds. */
export interface BackOff {
  /** Wait before the second try. Doubled before each further try. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Milliseconds to wait after `failures` consecutive failures (1 or more): `firstMs`, doubled with each failure up to
 * `maxMs`, minus a random part of up to one half ("equal jitter"), so that rows that failed together are retried apart.
 */
export function backOffMs({ firstMs, maxMs }: BackOff, failures: number): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (1 - Math.random() / 2));
}
