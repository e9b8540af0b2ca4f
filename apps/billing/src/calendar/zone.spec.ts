import { describe, expect, it } from '@jest/globals';
import { isAppError } from '@atoll/errors';
import { wall } from './wall-clock-fixture.js';
import { Zone } from './zone.js';

const instantOf = (zone: string, text: string) =>
  new Date(Zone.named(zone).instantOf(wall(text))).toISOString().replace('.000', '');

function refusalOf(name: string): unknown {
  try {
    return Zone.named(name);
  } catch (error) {
    return isAppError(error) ? [error.code, error.details.errors] : error;
  }
}

describe('a zone', () => {
  it('is found by any name of the tz database, links included, and is the same one each time', () => {
    for (const name of ['UTC', 'Asia/Kathmandu', 'Asia/Katmandu', 'Asia/Kolkata', 'US/Pacific', 'Etc/GMT+5', 'GB']) {
      expect(Zone.named(name).name).toBe(name);
      expect(Zone.named(name)).toBe(Zone.named(name));
    }
  });

  const times = ['T12:00Z', 't12+05', 'T00:00[Europe/Berlin]'];
  it.each(['', 'Mars/Olympus', 'local', '+05:45', '-08', 'Asia/Kathmandu ', '../etc/passwd', ...times])(
    'is not %j',
    (name) => {
      const message = 'timezone must be a time zone that this platform knows, such as Asia/Kathmandu';
      expect(refusalOf(name)).toEqual(['invalid_input', [{ path: 'timezone', code: 'knownZone', message }]]);
    },
  );

  it('tells offsets to the millisecond of their change, be it in the first hour of a year or for good', () => {
    const hours = (name: string, ...instants: number[]) =>
      instants.map((ms) => Zone.named(name).offsetAtMs(ms) / 3_600_000);
    const springMs = Date.UTC(2025, 2, 9, 10);
    expect(hours('America/Los_Angeles', springMs - 1, springMs)).toEqual([-8, -7]);
    const newYearMs = Date.UTC(2018, 0, 1, 1);
    expect(hours('Africa/Sao_Tome', Date.UTC(2018) - 1, newYearMs - 1, newYearMs, Date.UTC(2019))).toEqual([
      0, 0, 1, 1,
    ]);
    const sinceMs = Date.UTC(2016, 4, 1, 7);
    expect(hours('America/Caracas', sinceMs - 1, sinceMs, Date.UTC(2025))).toEqual([-4.5, -4, -4]);
    expect(hours('Asia/Kathmandu', Date.UTC(2000), Date.UTC(2199))).toEqual([5.75, 5.75]);
  });

  it('tells the changes within a range, and not those at its ends', () => {
    const zone = Zone.named('America/Los_Angeles');
    const springMs = Date.UTC(2025, 2, 9, 10);
    const autumnMs = Date.UTC(2025, 10, 2, 9);
    expect(zone.transitionsBetween(Date.UTC(2024, 11), Date.UTC(2026, 1))).toEqual([springMs, autumnMs]);
    expect(zone.transitionsBetween(springMs - 1, autumnMs + 1)).toEqual([springMs, autumnMs]);
    expect(zone.transitionsBetween(springMs, autumnMs)).toEqual([]);
    expect(Zone.named('UTC').transitionsBetween(Date.UTC(2000), Date.UTC(2200))).toEqual([]);
  });

  it('tells changes that are a week apart, of which no two have been closer since 2000', () => {
    const [springMs, autumnMs] = [Date.UTC(2000, 9, 8, 3), Date.UTC(2000, 9, 15, 2)];
    expect(Zone.named('America/Recife').transitionsBetween(Date.UTC(2000), Date.UTC(2001))).toEqual(
      expect.arrayContaining([springMs, autumnMs]),
    );
  });

  it('takes a wall-clock time that it skips for the end of the gap', () => {
    expect(instantOf('America/Los_Angeles', '2025-03-09T01:59:59')).toBe('2025-03-09T09:59:59Z');
    for (const skipped of [
      '2025-03-09T02:00:00',
      '2025-03-09T02:30:00',
      '2025-03-09T02:59:59',
      '2025-03-09T03:00:00',
    ]) {
      expect(instantOf('America/Los_Angeles', skipped)).toBe('2025-03-09T10:00:00Z');
    }
    expect(instantOf('Australia/Lord_Howe', '2025-10-05T02:10:00')).toBe('2025-10-04T15:30:00Z');
    expect(instantOf('Africa/Cairo', '2025-04-25T00:00:00')).toBe('2025-04-24T22:00:00Z');
    // All of 30 December.
    expect(instantOf('Pacific/Apia', '2011-12-30T00:00:00')).toBe('2011-12-30T10:00:00Z');
    expect(instantOf('Pacific/Apia', '2011-12-30T23:59:59')).toBe('2011-12-30T10:00:00Z');
    expect(instantOf('Pacific/Apia', '2011-12-31T00:00:01')).toBe('2011-12-30T10:00:01Z');
  });

  it('takes a wall-clock time that it shows twice for the earlier', () => {
    expect(instantOf('America/Los_Angeles', '2025-11-02T01:30:00')).toBe('2025-11-02T08:30:00Z');
    expect(instantOf('America/Los_Angeles', '2025-11-02T02:00:00')).toBe('2025-11-02T10:00:00Z');
    expect(instantOf('Australia/Lord_Howe', '2025-04-06T01:45:00')).toBe('2025-04-05T14:45:00Z');
    // From 00:01 back to 23:01 of the day before: the new day has begun by then.
    expect(instantOf('America/St_Johns', '2010-11-07T00:00:00')).toBe('2010-11-07T02:30:00Z');
    expect(instantOf('America/St_Johns', '2010-11-06T23:30:00')).toBe('2010-11-07T02:00:00Z');
    // From 24:00 back to 23:00: the new day has not begun.
    expect(instantOf('Asia/Beirut', '2025-10-26T00:00:00')).toBe('2025-10-25T22:00:00Z');
  });

  it('writes instants with its offset, and UTC with Z', () => {
    const ms = Date.UTC(2026, 8, 30, 18, 15, 7);
    const written = ['UTC', 'Asia/Kathmandu', 'America/St_Johns', 'Europe/London', 'Etc/UTC'].map((name) =>
      Zone.named(name).format(ms),
    );
    expect(written).toEqual([
      '2026-09-30T18:15:07Z',
      '2026-10-01T00:00:07+05:45',
      '2026-09-30T15:45:07-02:30',
      '2026-09-30T19:15:07+01:00',
      '2026-09-30T18:15:07+00:00',
    ]);
  });

  it('is known to the ends of what billing reads', () => {
    const zone = Zone.named('Europe/Berlin');
    expect(zone.format(zone.instantOf(wall('2000-01-01T00:00:00')))).toBe('2000-01-01T00:00:00+01:00');
    expect(zone.format(zone.instantOf(wall('2199-07-01T00:00:00')))).toBe('2199-07-01T00:00:00+02:00');
  });
});
