interface Bucket {
  start: string;
  end: string;
  cost: string;
}

const dayMs = 86_400_000;

/**
 * Forecast of a month's cost: the cost so far, plus the rate of the last 24 hours until its end. `monthEnd` is the
 * first day of the next month; the offset of the zone is taken from the buckets.
 */
export function forecast(
  soFar: number,
  hours: readonly Bucket[],
  asOf: string,
  monthEnd: string,
): { total: number; perDay: number } {
  const nowMs = Date.parse(asOf);
  const recent = hours.filter(({ start }) => Date.parse(start) >= nowMs - dayMs && Date.parse(start) < nowMs);
  const fromMs = recent[0] ? Date.parse(recent[0].start) : nowMs;
  const spend = recent.reduce((all, bucket) => all + Number(bucket.cost), 0);
  const perMs = nowMs > fromMs ? spend / (nowMs - fromMs) : 0;
  const offset = /(?:Z|[+-]\d\d:\d\d)$/.exec(hours.at(-1)?.end ?? 'Z')?.[0] ?? 'Z';
  const leftMs = Math.max(0, Date.parse(`${monthEnd}T00:00:00${offset}`) - nowMs);
  return { total: soFar + perMs * leftMs, perDay: perMs * dayMs };
}
