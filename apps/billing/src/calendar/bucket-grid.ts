import type { BillingInterval } from '@atoll/contracts/billing';
import type { Zone } from './zone.js';

const hourMs = 3_600_000;

/** From `start` up to and without `end`, as instants and as the wall-clock times that were asked for; milliseconds. */
export interface ZonedRange {
  startMs: number;
  endMs: number;
  startWallMs: number;
  endWallMs: number;
}

/**
 * Every instant at which buckets of the interval meet, from `startMs` to `endMs`, both included, and perhaps one before
 * and one after; ascending.
 */
export function bucketGrid(zone: Zone, interval: BillingInterval, range: ZonedRange): number[] {
  return interval === 'hourly' ? hourGrid(zone, range.startMs, range.endMs) : dateGrid(zone, nthStart[interval], range);
}

/** Where the local clock shows a full hour, and where it is changed: an hour in which that happens is cut there. */
function hourGrid(zone: Zone, startMs: number, endMs: number): number[] {
  const changes = zone.transitionsBetween(startMs - 1, endMs + 1);
  const grid: number[] = [];
  let fromMs = startMs - 1;
  for (const toMs of [...changes, endMs + 1]) {
    const offsetMs = zone.offsetAtMs(fromMs);
    const firstMs = (Math.floor((fromMs + offsetMs) / hourMs) + 1) * hourMs - offsetMs;
    for (let atMs = firstMs; atMs < toMs; atMs += hourMs) grid.push(atMs);
    if (toMs <= endMs) grid.push(toMs);
    fromMs = toMs;
  }
  return grid;
}

/** The wall-clock start of the n-th bucket, counted from the one that `date` is in. */
type NthStart = (date: Date, n: number) => number;

const nthStart: Record<Exclude<BillingInterval, 'hourly'>, NthStart> = {
  daily: (date, n) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + n),
  weekly: (date, n) =>
    Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() - daysSinceMonday(date) + 7 * n),
  monthly: (date, n) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n),
};

function daysSinceMonday(date: Date): number {
  return (date.getUTCDay() + 6) % 7;
}

/**
 * Dates are counted on the calendar and only then turned into instants: a day that the zone skips starts with the next,
 * and is no bucket.
 */
function dateGrid(zone: Zone, start: NthStart, { startWallMs, endWallMs }: ZonedRange): number[] {
  const date = new Date(startWallMs);
  const grid: number[] = [];
  let wallMs = -Infinity;
  for (let n = 0; wallMs < endWallMs; n++) {
    wallMs = start(date, n);
    const atMs = zone.instantOf(wallMs);
    if (atMs !== grid.at(-1)) grid.push(atMs);
  }
  return grid;
}
