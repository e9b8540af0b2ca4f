/** Milliseconds. */
export interface BackOff {
  /** Before the second try. Doubled before each further one. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Milliseconds to wait after `failures` failures in a row (1 or more): `firstMs` doubled with each failure, `maxMs` at
 * most, less a random part of up to one half ("equal jitter"), so that rows that failed together come back apart.
 */
export function backOffMs({ firstMs, maxMs }: BackOff, failures: number): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (1 - Math.random() / 2));
}
