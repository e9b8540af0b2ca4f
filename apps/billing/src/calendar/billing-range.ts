import type { BillingInterval, BillingRange, ComparisonQuery } from '@atoll/contracts/billing';
import { invalidField, invalidInput } from '@atoll/errors';
import { bucketGrid } from './bucket-grid.js';
import { Zone } from './zone.js';

/** A range of time in buckets; instants in milliseconds. */
export interface BillingPeriod {
  zone: Zone;
  startMs: number;
  endMs: number;
  interval: BillingInterval;
  /** Where buckets start and end: ascending, the first is `startMs`, the last `endMs`. */
  bounds: number[];
  /** Whether the first bucket is whole, and not cut by the start of the range. */
  startsOnGrid: boolean;
  /** Whether the last bucket is whole, and not cut by the end of the range. */
  endsOnGrid: boolean;
}

/** From `startMs` up to and without `endMs`. */
export interface Month {
  startMs: number;
  endMs: number;
}

const earliestYear = 2000;
const latestYear = 2199;

/** The longest range, measured on the wall clock. */
const longest: Record<BillingInterval, { years: number; days: number; words: string }> = {
  hourly: { years: 0, days: 366, words: '366 days' },
  daily: { years: 3, days: 0, words: '3 years' },
  weekly: { years: 5, days: 0, words: '5 years' },
  monthly: { years: 10, days: 0, words: '10 years' },
};

/**
 * The range of a report in the zone asked for: `utc` unless `local`, which is `profileZone`.
 * Throws `invalid_input` that names `start_date` or `end_date` and what is allowed.
 */
export function readPeriod(range: BillingRange, profileZone: string): BillingPeriod {
  const { interval } = range;
  const zone = zoneOf(range.timezone, profileZone);
  const allowed = `a real date in the years ${earliestYear} to ${latestYear}`;
  const { start_date: startWallMs, end_date: endWallMs } = readWalls(
    { start_date: range.start_date, end_date: range.end_date },
    allowed,
  );
  if (startWallMs >= endWallMs) throw invalidField('end_date', 'later', 'must be later than start_date');
  if (endWallMs > latestEnd(startWallMs, interval)) {
    throw invalidField(
      'end_date',
      'longestRange',
      `must be at most ${longest[interval].words} after start_date where interval is ${interval}`,
    );
  }
  const startMs = zone.instantOf(startWallMs);
  const endMs = zone.instantOf(endWallMs);
  if (startMs === endMs) {
    throw invalidField(
      'end_date',
      'skippedByClocks',
      `must be later than start_date: clocks in ${zone.name} skip the time between them`,
    );
  }
  const grid = bucketGrid(zone, interval, { startMs, endMs, startWallMs, endWallMs });
  return {
    zone,
    startMs,
    endMs,
    interval,
    bounds: [startMs, ...grid.filter((atMs) => atMs > startMs && atMs < endMs), endMs],
    startsOnGrid: grid.includes(startMs),
    endsOnGrid: grid.includes(endMs),
  };
}

/**
 * The two months of a comparison in the zone asked for, as `readPeriod` has it.
 * Throws `invalid_input` that names `start_month` or `end_month` and what is allowed.
 */
export function readMonths(
  query: Pick<ComparisonQuery, 'start_month' | 'end_month' | 'timezone'>,
  profileZone: string,
): { zone: Zone; start: Month; end: Month } {
  const zone = zoneOf(query.timezone, profileZone);
  const texts = { start_month: `${query.start_month}-01T00:00:00`, end_month: `${query.end_month}-01T00:00:00` };
  const walls = readWalls(texts, `a month in the years ${earliestYear} to ${latestYear}`);
  if (walls.start_month >= walls.end_month) throw invalidField('end_month', 'later', 'must be later than start_month');
  return { zone, start: monthFrom(zone, walls.start_month), end: monthFrom(zone, walls.end_month) };
}

function zoneOf(timezone: BillingRange['timezone'], profileZone: string): Zone {
  return Zone.named(timezone === 'local' ? profileZone : 'UTC');
}

function monthFrom(zone: Zone, wallMs: number): Month {
  const date = new Date(wallMs);
  const nextWallMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return { startMs: zone.instantOf(wallMs), endMs: zone.instantOf(nextWallMs) };
}

/** Calendar years: those from 29 February end on 1 March where there is no 29 February. */
function latestEnd(startWallMs: number, interval: BillingInterval): number {
  const { years, days } = longest[interval];
  const end = new Date(startWallMs);
  end.setUTCFullYear(end.getUTCFullYear() + years);
  return end.setUTCDate(end.getUTCDate() + days);
}

/** The wall-clock times of texts of the form YYYY-MM-DDTHH:MM:SS; names each that is not `allowed`. */
function readWalls<Name extends string>(texts: Record<Name, string>, allowed: string): Record<Name, number> {
  const names = Object.keys(texts) as Name[];
  const walls = names.map((name) => [name, readWall(texts[name])] as const);
  const errors = walls.flatMap(([path, wallMs]) =>
    wallMs === undefined ? [{ path, code: 'realDate', message: `${path} must be ${allowed}` }] : [],
  );
  if (errors.length > 0) throw invalidInput(errors);
  return Object.fromEntries(walls) as Record<Name, number>;
}

/**
 * Undefined for a text that is not a date in the allowed years. Date.parse reads 30 February as 2 March, so the result
 * is compared with the input.
 */
function readWall(text: string): number | undefined {
  const date = new Date(`${text}Z`);
  const year = date.getUTCFullYear();
  const isAllowed = year >= earliestYear && year <= latestYear && date.toISOString().slice(0, 19) === text;
  return isAllowed ? date.getTime() : undefined;
}
