/** Wall-clock times of a zone, in the form of billing paths. */

interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formats.set(zone, format);
  }
  return format;
}

/** What the clocks of a zone show at an instant (epoch milliseconds). */
function wallClock(atMs: number, zone: string): Wall {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month, day, hour, minute, second };
}

/** The day that the clocks of a zone show: `2026-11-22`. */
export function dayIn(atMs: number, zone: string): string {
  const { year, month, day } = wallClock(atMs, zone);
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}`;
}

/** Days later or earlier, by the calendar. */
export function addDays(day: string, count: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + count * 86_400_000).toISOString().slice(0, 10);
}

/** The first day of a month, months later or earlier. */
export function addMonths(day: string, count: number): string {
  const [year = 0, month = 1] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + count, 1)).toISOString().slice(0, 10);
}

/** An instant as the clocks of a zone show it, for a field: `2026-11-22T08:51`. */
export function wallTime(instant: string, zone: string): string {
  const { hour, minute } = wallClock(Date.parse(instant), zone);
  return `${dayIn(Date.parse(instant), zone)}T${pad(hour)}:${pad(minute)}`;
}

/**
 * The instant at which the clocks of a zone show a wall-clock time (`2026-11-22T08:51`); undefined for what is none. As
 * in billing paths, a time that the zone skips is the end of the gap, and one that occurs twice is the earlier.
 */
export function instantAt(wall: string, zone: string): string | undefined {
  const asUtcMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(wall) ? Date.parse(`${wall}Z`) : NaN;
  if (Number.isNaN(asUtcMs)) return undefined;
  const shownMs = (atMs: number) => {
    const { year, month, day, hour, minute, second } = wallClock(atMs, zone);
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
  // The offsets of a day before and a day after are those on either side of a change.
  const offsets = [asUtcMs - 86_400_000, asUtcMs + 86_400_000].map((atMs) => shownMs(atMs) - atMs);
  const candidates = offsets.map((offset) => asUtcMs - offset).toSorted((a, b) => a - b);
  const exact = candidates.find((atMs) => shownMs(atMs) === asUtcMs);
  if (exact !== undefined) return new Date(exact).toISOString();
  // In the gap: the minute at which the clocks have gone past it.
  let [low = 0, high = 0] = candidates;
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000;
    if (shownMs(middle) >= asUtcMs) high = middle;
    else low = middle;
  }
  return new Date(high).toISOString();
}

/** Whether it is a real day in the form `2026-11-22`. */
export function isDay(text: unknown): text is string {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

function pad(value: number, digits = 2): string {
  return String(value).padStart(digits, '0');
}
