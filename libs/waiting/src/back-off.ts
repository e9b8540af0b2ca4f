/** Waits between tries, in milliseconds. */
export interface BackOff {
  /** Wait before the second try. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** How many times as long each further wait is; 2 unless given. */
  readonly factor?: number;
  /**
   * The part of a wait that chance may take off, so that those that failed together are retried apart: 1/2 unless given
   * ("equal jitter").
   */
  readonly jitter?: number;
}

/**
 * A period in milliseconds, less up to a tenth of it by chance: what began together, such as after an outage, comes
 * apart with each period.
 */
export function spreadMs(periodMs: number): number {
  return backOffMs({ firstMs: periodMs, maxMs: periodMs, jitter: 1 / 10 }, 1);
}

/**
 * Milliseconds to wait after `failures` consecutive failures (1 or more): `firstMs`, longer with each failure up to
 * `maxMs`, less what chance takes off.
 */
export function backOffMs({ firstMs, maxMs, factor = 2, jitter = 1 / 2 }: BackOff, failures: number): number {
  return Math.round(Math.min(maxMs, firstMs * factor ** (failures - 1)) * (1 - Math.random() * jitter));
}
