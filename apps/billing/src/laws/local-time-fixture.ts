/**
 * Local time as the oracle has it: slow, plain, and of another make than the product's calendar. All it takes from Intl
 * is what a clock in the zone shows at an instant.
 */
const quarterMs = 15 * 60_000;
const dayMs = 24 * 60 * 60_000;
const clocks = new Map<string, Intl.DateTimeFormat>();

/** What the clock of the zone shows, as if it were UTC. */
export function localMs(zone: string, ms: number): number {
  let clock = clocks.get(zone);
  if (!clock) {
    clock = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
    clocks.set(zone, clock);
  }
  const shown = Object.fromEntries(clock.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = shown;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (ms % 1000);
}

/** The first instant at which the clock shows this time or a later one: the end of a gap, the earlier of two. */
export function instantOf(zone: string, wallMs: number): number {
  let before = wallMs - 16 * 60 * 60_000;
  while (localMs(zone, before + quarterMs) < wallMs) before += quarterMs;
  let after = before + quarterMs;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (localMs(zone, middle) < wallMs) before = middle;
    else after = middle;
  }
  return after;
}

const offsetAt = (zone: string, ms: number) => localMs(zone, ms) - ms;

/** Instants strictly between where the offset changes. */
function changesBetween(zone: string, startMs: number, endMs: number): number[] {
  const found: number[] = [];
  for (let at = startMs - (startMs % quarterMs); at < endMs; at += quarterMs) {
    if (offsetAt(zone, at) === offsetAt(zone, at + quarterMs)) continue;
    let [before, after] = [at, at + quarterMs];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offsetAt(zone, middle) === offsetAt(zone, before)) before = middle;
      else after = middle;
    }
    found.push(after);
  }
  return found.filter((at) => at > startMs && at < endMs);
}

function fullHoursBetween(zone: string, startMs: number, endMs: number): number[] {
  const found: number[] = [];
  for (let at = startMs - (startMs % quarterMs); at < endMs; at += quarterMs) {
    if (at > startMs && localMs(zone, at) % (60 * 60_000) === 0) found.push(at);
  }
  return found;
}

export type Interval = 'monthly' | 'weekly' | 'daily' | 'hourly';

/** Where buckets of this kind begin within the range; its start among them only where it is such a place. */
export function gridOf(zone: string, interval: Interval, startMs: number, endMs: number): number[] {
  if (interval === 'hourly') {
    const hours = fullHoursBetween(zone, startMs - 1, endMs + 1);
    return [...new Set([...hours, ...changesBetween(zone, startMs - 1, endMs + 1)])].sort((one, other) => one - other);
  }
  const found = new Set<number>();
  for (
    let date = Math.floor(localMs(zone, startMs) / dayMs) * dayMs - dayMs;
    date <= localMs(zone, endMs) + 2 * dayMs;
    date += dayMs
  ) {
    const day = new Date(date);
    if (interval === 'weekly' && day.getUTCDay() !== 1) continue;
    if (interval === 'monthly' && day.getUTCDate() !== 1) continue;
    const at = instantOf(zone, date);
    if (at >= startMs && at <= endMs) found.add(at);
  }
  return [...found].sort((one, other) => one - other);
}

/** `2026-10-01T00:00:00`, of a wall-clock time. */
export function wallText(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 19);
}
