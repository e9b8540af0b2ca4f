import type { MetricWindow } from '@atoll/contracts';
import type { MeasuredSubscription } from './metrics-source.js';

const hourMs = 3_600_000;
const windowMs: Readonly<Record<MetricWindow, number>> = {
  last_1h: hourMs,
  last_6h: 6 * hourMs,
  last_24h: 24 * hourMs,
  last_7d: 7 * 24 * hourMs,
  last_30d: 30 * 24 * hourMs,
};

/** Instants at equal distances, both ends included, in whole seconds since 1970. */
export interface Timeline {
  readonly startS: number;
  readonly endS: number;
  readonly stepS: number;
}

/** From when on a subscription's samples count; null if it never was active. */
export function measuredFromMs(subscription: MeasuredSubscription, window: MetricWindow, nowMs: number): number | null {
  return subscription.activeSince && Math.max(nowMs - windowMs[window], subscription.activeSince.getTime());
}

/**
 * At most `stepsAtMost` steps of a minute or more, the last of which ends now: so what became active a moment ago has an instant too.
 * Prometheus refuses more than 11,000 points a series.
 */
export function timeline(fromMs: number, nowMs: number, stepsAtMost: number): Timeline {
  const endS = Math.floor(nowMs / 1000);
  const spanS = Math.max(0, endS - Math.ceil(fromMs / 1000));
  const stepS = Math.max(60, Math.ceil(spanS / stepsAtMost));
  return { startS: endS - Math.floor(spanS / stepS) * stepS, endS, stepS };
}
