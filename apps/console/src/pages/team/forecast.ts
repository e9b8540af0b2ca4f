import { instantAt } from '../../format/zone.js';

interface Bucket {
  start: string;
  end: string;
  cost: string;
}

const dayMs = 86_400_000;

/**
 * Forecast of a month's cost: the cost so far, plus the rate of the last 24 hours until its end. `monthEnd` is the
 * first day of the next month, in the zone of the report.
 */
export function forecast(
  soFar: number,
  hours: readonly Bucket[],
  asOf: string,
  monthEnd: string,
  zone: string,
): { total: number; perDay: number } {
  const nowMs = Date.parse(asOf);
  const recent = hours.filter(({ start }) => Date.parse(start) >= nowMs - dayMs && Date.parse(start) < nowMs);
  const fromMs = recent[0] ? Date.parse(recent[0].start) : nowMs;
  const spend = recent.reduce((all, bucket) => all + Number(bucket.cost), 0);
  const perMs = nowMs > fromMs ? spend / (nowMs - fromMs) : 0;
  const leftMs = Math.max(0, Date.parse(instantAt(`${monthEnd}T00:00`, zone) ?? asOf) - nowMs);
  return { total: soFar + perMs * leftMs, perDay: perMs * dayMs };
}
