import type { MetricWindow } from '@atoll/contracts/gpuaas';

const hourMs = 3_600_000;

/** Lengths of the windows in milliseconds. */
export const windowMs: Readonly<Record<MetricWindow, number>> = {
  last_1h: hourMs,
  last_6h: 6 * hourMs,
  last_24h: 24 * hourMs,
  last_7d: 7 * 24 * hourMs,
  last_30d: 30 * 24 * hourMs,
};
