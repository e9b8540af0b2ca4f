import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { BillingInterval } from '@atoll/contracts/billing';
import fc from 'fast-check';
import { BillingFixture } from '../billing-fixture.js';
import { runs } from '@atoll/testing';
import { readPeriod, type BillingPeriod } from './billing-range.js';
import { WallClock } from './wall-clock-fixture.js';
import { Zone } from './zone.js';

const secondMs = 1000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const intervals: BillingInterval[] = ['hourly', 'daily', 'weekly', 'monthly'];
const fromMs = Date.UTC(2015);
const toMs = Date.UTC(2038);

/** Each law is tried in some 600 zones: in each a hundredth as often as a law that is tried once over. */
const { numRuns = 100, seed } = runs(100);
const runsPerZone = { numRuns: Math.ceil(numRuns / 100), ...(seed !== undefined && { seed }) };
/** A law that is tried less often is tried in every fourth zone or so, each time in others; to repeat a run, in all. */
const zoneStep = seed === undefined ? Math.max(1, Math.round(100 / numRuns)) : 1;
const firstZone = Math.floor(Math.random() * zoneStep);

let fixture: BillingFixture;
let zones: { zone: Zone; clock: WallClock }[];
beforeAll(async () => {
  fixture = await BillingFixture.start();
  const rows = await fixture.query<{ name: string }>('SELECT name FROM pg_timezone_names ORDER BY name');
  zones = rows
    .filter(({ name }) => isKnownToIntl(name))
    .map(({ name }) => ({ zone: Zone.named(name), clock: new WallClock(name) }));
});
afterAll(() => fixture.stop());

function isKnownToIntl(timeZone: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone }));
  } catch {
    return false;
  }
}

/** Whole seconds, as instants or as wall-clock times. */
const moment = fc.integer({ min: fromMs / secondMs, max: toMs / secondMs - 1 }).map((seconds) => seconds * secondMs);
/** How long before or after a change of the clock it is that something is asked. */
const nearbyMs = fc.integer({ min: -7_200, max: 7_200 }).map((seconds) => seconds * secondMs);

/** Holds in each zone that Intl and PostgreSQL know. What is wrong, if anything, is told by `faults`. */
function holdsInEveryZone<T extends unknown[]>(
  arbitraries: { [K in keyof T]: fc.Arbitrary<T[K]> },
  faults: (zone: Zone, clock: WallClock, ...values: T) => unknown[],
): void {
  expect(zones.length).toBeGreaterThan(500);
  for (const { zone, clock } of zones.filter((_, at) => at % zoneStep === firstZone)) {
    const law = (values: T) => expect([zone.name, ...faults(zone, clock, ...values)]).toEqual([zone.name]);
    fc.assert(fc.property(fc.tuple<T>(...arbitraries), law), runsPerZone);
  }
}

function dateText(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 19);
}

/** Undefined where clocks skip all of it. */
function periodOf(
  zone: Zone,
  interval: BillingInterval,
  startWallMs: number,
  lengthMs: number,
): BillingPeriod | undefined {
  const endWallMs = startWallMs + lengthMs;
  if (zone.instantOf(startWallMs) === zone.instantOf(endWallMs)) return undefined;
  return readPeriod(
    { start_date: dateText(startWallMs), end_date: dateText(endWallMs), interval, timezone: 'local' },
    zone.name,
  );
}

/** Which bucket a wall-clock time is in, by a number that grows with time. */
const bucketNumber: Record<BillingInterval, (wallMs: number) => number> = {
  hourly: (wallMs) => Math.floor(wallMs / hourMs),
  daily: (wallMs) => Math.floor(wallMs / dayMs),
  // 5 January 1970 was a Monday.
  weekly: (wallMs) => Math.floor((wallMs - 4 * dayMs) / (7 * dayMs)),
  monthly: (wallMs) => new Date(wallMs).getUTCFullYear() * 12 + new Date(wallMs).getUTCMonth(),
};

describe('law, in every zone that Intl and PostgreSQL know, 2015 to 2037:', () => {
  it('an offset is what its clocks show, and the changes told are the changes there are', () => {
    holdsInEveryZone([moment, fc.array(moment, { minLength: 4, maxLength: 4 })], (zone, clock, startMs, instants) => {
      const changes = zone.transitionsBetween(startMs, startMs + 366 * dayMs);
      return [
        ...instants.filter((ms) => ms + zone.offsetAtMs(ms) !== clock.at(ms)),
        ...changes.filter((ms) => !clock.changesAt(ms) || zone.offsetAtMs(ms) === zone.offsetAtMs(ms - 1)),
      ];
    });
  });

  it('a wall-clock time is the first instant that shows it or later, by looking at each minute', () => {
    holdsInEveryZone([moment, nearbyMs], (zone, clock, wallMs, nearMs) => {
      const [changeMs] = zone.transitionsBetween(wallMs, wallMs + 366 * dayMs);
      const walls = changeMs === undefined ? [wallMs] : [clock.at(changeMs) + nearMs];
      return walls.filter((asked) => zone.instantOf(asked) !== clock.firstAt(asked));
    });
  });

  it('what is written of an instant reads back as it, and shows its wall-clock time', () => {
    holdsInEveryZone([fc.array(moment, { minLength: 4, maxLength: 4 })], (zone, clock, instants) =>
      instants.filter((ms) => {
        const text = zone.format(ms);
        return Date.parse(text) !== ms || text.slice(0, 19) !== dateText(clock.at(ms));
      }),
    );
  });

  const length = fc.integer({ min: 1, max: 45 * 24 * 3600 }).map((seconds) => seconds * secondMs);

  it('bounds ascend from the start to the end; each between them is a full hour or midnight, or a change of the clock', () => {
    holdsInEveryZone(
      [moment, length, fc.constantFrom(...intervals)],
      (zone, clock, startWallMs, lengthMs, interval) => {
        const period = periodOf(zone, interval, startWallMs, lengthMs);
        if (!period) return [];
        const { bounds, startMs, endMs } = period;
        const ends = [startMs, endMs, bounds[0], bounds.at(-1)];
        const asked = [startWallMs, startWallMs + lengthMs].map((wallMs) => zone.instantOf(wallMs));
        const unit = interval === 'hourly' ? hourMs : dayMs;
        return [
          ...ends.filter((ms, index) => ms !== asked[index % 2]),
          ...bounds.filter((ms, index) => index > 0 && ms <= (bounds[index - 1] ?? ms)),
          ...bounds.slice(1, -1).filter((ms) => clock.at(ms) % unit !== 0 && !clock.changesAt(ms)),
        ];
      },
    );
  });

  it('a bucket holds no time of a later hour, day, week or month; the next one does', () => {
    holdsInEveryZone(
      [moment, length, fc.constantFrom(...intervals)],
      (zone, clock, startWallMs, lengthMs, interval) => {
        const numberAt = (ms: number) => bucketNumber[interval](clock.at(ms));
        const bounds = periodOf(zone, interval, startWallMs, lengthMs)?.bounds ?? [];
        const hours = periodOf(zone, 'hourly', startWallMs, lengthMs)?.bounds ?? [];
        let bucket = 0;
        const inner = hours.slice(0, -1).filter((ms) => {
          while (ms >= (bounds[bucket + 1] ?? Infinity)) bucket++;
          return numberAt(ms) > numberAt(bounds[bucket] ?? ms);
        });
        const unmoved = bounds.slice(1, -1).filter((ms, index) => {
          const moves = numberAt(ms) > numberAt(bounds[index] ?? ms);
          // An hour is cut at a change of the clock, and may come twice.
          return !moves && !(interval === 'hourly' && clock.changesAt(ms));
        });
        return [...inner, ...unmoved];
      },
    );
  });

  it('hours nest in days, days in weeks and in months', () => {
    holdsInEveryZone([moment, length], (zone, _clock, startWallMs, lengthMs) => {
      const [hours, days, weeks, months] = intervals.map(
        (interval) => periodOf(zone, interval, startWallMs, lengthMs)?.bounds ?? [],
      );
      const missing = (fine: number[] = [], coarse: number[] = []) => coarse.filter((ms) => !fine.includes(ms));
      return [...missing(hours, days), ...missing(days, weeks), ...missing(days, months)];
    });
  });

  it('ends are on the grid exactly where a longer range has a bound there', () => {
    holdsInEveryZone(
      [moment, length, fc.constantFrom(...intervals), fc.boolean()],
      (zone, _clock, wallMs, lengthMs, interval, full) => {
        // A full day starts on many a grid, and any second on none.
        const startWallMs = full ? Math.floor(wallMs / dayMs) * dayMs : wallMs;
        const period = periodOf(zone, interval, startWallMs, lengthMs);
        const longer = periodOf(zone, interval, startWallMs - 40 * dayMs, lengthMs + 80 * dayMs);
        if (!period || !longer) return [];
        return [
          ...(longer.bounds.includes(period.startMs) === period.startsOnGrid ? [] : ['start']),
          ...(longer.bounds.includes(period.endMs) === period.endsOnGrid ? [] : ['end']),
        ];
      },
    );
  });
});
