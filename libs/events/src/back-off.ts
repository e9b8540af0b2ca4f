export interface BackOff {
  /** Before the second try; doubled (or what `factor` says) before each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  readonly factor?: number;
}

/** Milliseconds to wait after `failures` failures in a row (1 or more), with up to a fifth of jitter so that replicas part. */
export function backOffMs(backOff: BackOff, failures: number): number {
  const { firstDelayMs, maxDelayMs, factor = 2 } = backOff;
  const delayMs = Math.min(maxDelayMs, firstDelayMs * factor ** (failures - 1));
  return Math.round(delayMs * (1 - Math.random() / 5));
}
