import { invalidField } from '@atoll/errors';

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const dayMs = 24 * 60 * minuteMs;

/** The tz database has about 600 names, so this bound is met by nonsense alone. */
const mostZones = 1000;
const zones = new Map<string, Zone>();

/** The offset in milliseconds east of UTC that holds at an instant. */
interface Reading {
  atMs: number;
  offsetMs: number;
}

/** What is used here of `Temporal`, whose types the TypeScript of the linter does not have yet. */
interface ZonedDateTime {
  readonly epochMilliseconds: number;
  readonly offsetNanoseconds: number;
  getTimeZoneTransition(direction: 'next'): ZonedDateTime | null;
}
declare const Temporal: {
  Instant: { fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: string): ZonedDateTime } };
};

/**
 * A zone of the tz database, as this Node's Temporal knows it. Its changes are read once a UTC year. After that a zone
 * costs no more than UTC.
 *
 * Instants and wall-clock times are milliseconds, the latter as `Date.UTC` would have them. Meant for 2000 and later:
 * from then on all offsets are whole minutes.
 */
export class Zone {
  /** Throws `invalid_input` for what Temporal does not know. */
  static named(name: string): Zone {
    let zone = zones.get(name);
    if (!zone) {
      requireKnown(name);
      zone = new Zone(name);
      if (zones.size >= mostZones) zones.clear();
      zones.set(name, zone);
    }
    return zone;
  }

  /**
   * By UTC year: what held in the second before it, then each change within it. Billing reads some 200 years, so there
   * are no more.
   */
  private readonly years = new Map<number, readonly Reading[]>();

  private constructor(readonly name: string) {}

  /** What was found last: the bounds of a report ask for one offset thousands of times. */
  private found = { offsetMs: 0, fromMs: Infinity, toMs: -Infinity };

  /** Milliseconds east of UTC. */
  offsetAtMs(ms: number): number {
    if (ms < this.found.fromMs || ms >= this.found.toMs) this.found = this.find(ms);
    return this.found.offsetMs;
  }

  /** The instants after `fromMs` and before `toMs` at which the offset changes. */
  transitionsBetween(fromMs: number, toMs: number): number[] {
    const found: number[] = [];
    for (let year = utcYear(fromMs); year <= utcYear(toMs); year++) {
      const [, ...changes] = this.year(year);
      for (const { atMs } of changes) if (atMs > fromMs && atMs < toMs) found.push(atMs);
    }
    return found;
  }

  /**
   * The first instant whose local clock shows `wallMs` or later: of a time that the zone skips the end of the gap, of
   * one that comes twice the earlier.
   */
  instantOf(wallMs: number): number {
    // No zone is a day ahead of UTC, or behind it.
    const beforeMs = wallMs - dayMs;
    let atMs = wallMs - this.offsetAtMs(beforeMs);
    for (const changeMs of this.transitionsBetween(beforeMs, wallMs + dayMs)) {
      if (atMs < changeMs) break;
      atMs = Math.max(changeMs, wallMs - this.offsetAtMs(changeMs));
    }
    return atMs;
  }

  /** ISO 8601 to the second, with the zone's offset: `2026-10-01T00:00:00+05:45`; `Z` in UTC. */
  format(ms: number): string {
    const offsetMs = this.offsetAtMs(ms);
    return wallText(ms + offsetMs) + (this.name === 'UTC' ? 'Z' : offsetText(offsetMs));
  }

  /** The offset at an instant, and between which instants of its UTC year it holds. */
  private find(ms: number): { offsetMs: number; fromMs: number; toMs: number } {
    const year = utcYear(ms);
    const readings = this.year(year);
    const at = readings.findLastIndex(({ atMs }) => atMs <= ms);
    const { offsetMs = 0, atMs: fromMs = ms } = readings[at] ?? {};
    return { offsetMs, fromMs, toMs: readings[at + 1]?.atMs ?? Date.UTC(year + 1) };
  }

  private year(year: number): readonly Reading[] {
    let readings = this.years.get(year);
    if (!readings) {
      readings = this.name === 'UTC' ? [{ atMs: Date.UTC(year) - secondMs, offsetMs: 0 }] : readYear(this.name, year);
      this.years.set(year, readings);
    }
    return readings;
  }
}

function utcYear(ms: number): number {
  return new Date(ms).getUTCFullYear();
}

function requireKnown(name: string): void {
  // Temporal takes offsets for zones, also those of a time such as T12:00+05:30; a zone has a name.
  if (/^(?!T\d)[A-Z][\w+/-]*$/i.test(name)) {
    try {
      zonedAt(0, name);
      return;
    } catch (error) {
      if ((error as Error).name !== 'RangeError') throw error;
    }
  }
  throw invalidField('timezone', 'knownZone', 'must be a time zone that this platform knows, such as Asia/Kathmandu');
}

function zonedAt(ms: number, name: string): ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(name);
}

function readYear(name: string, year: number): Reading[] {
  const readings: Reading[] = [];
  let at: ZonedDateTime | null = zonedAt(Date.UTC(year) - secondMs, name);
  for (; at && at.epochMilliseconds < Date.UTC(year + 1); at = at.getTimeZoneTransition('next'))
    readings.push({ atMs: at.epochMilliseconds, offsetMs: at.offsetNanoseconds / 1e6 });
  return readings;
}

const twoDigits = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));

let lastDay = { day: NaN, text: '' };

/** As `toISOString` has it, to the second, at a sixth of its cost: a year by the hour has 8,760 buckets to tell. */
function wallText(wallMs: number): string {
  const day = Math.floor(wallMs / dayMs);
  if (day !== lastDay.day) lastDay = { day, text: new Date(wallMs).toISOString().slice(0, 11) };
  const second = Math.floor((wallMs - day * dayMs) / secondMs);
  const minute = Math.floor(second / 60);
  return `${lastDay.text}${twoDigits[Math.floor(minute / 60)]}:${twoDigits[minute % 60]}:${twoDigits[second % 60]}`;
}

function offsetText(offsetMs: number): string {
  const minutes = Math.abs(offsetMs) / minuteMs;
  return `${offsetMs < 0 ? '-' : '+'}${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}`;
}
