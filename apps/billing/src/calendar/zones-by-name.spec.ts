import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { BillingInterval } from '@atoll/contracts/billing';
import { BillingFixture } from '../billing-fixture.js';
import { readPeriod } from './billing-range.js';

interface Scenario {
  zone: string;
  /** What is particular about it, and where that leaves the bounds. */
  guarantee: string;
  interval: BillingInterval;
  /** As asked for: wall-clock times of the zone, from and to. */
  range: [string, string];
  bounds: string[];
}

/**
 * From the laws of the places as the tz database has them, worked out by hand. All are of the past: what is to come may
 * be changed yet.
 */
const scenarios: Scenario[] = [
  {
    zone: 'Asia/Kathmandu',
    guarantee: 'hours start at a quarter past those of UTC',
    interval: 'hourly',
    range: ['2025-10-01T00:00:00', '2025-10-01T03:00:00'],
    bounds: [
      '2025-10-01T00:00:00+05:45',
      '2025-10-01T01:00:00+05:45',
      '2025-10-01T02:00:00+05:45',
      '2025-10-01T03:00:00+05:45',
    ],
  },
  {
    zone: 'Asia/Kathmandu',
    guarantee: 'a month has the hours of its own first and last day',
    interval: 'monthly',
    range: ['2025-10-01T00:00:00', '2025-12-01T00:00:00'],
    bounds: ['2025-09-30T18:15:00Z', '2025-10-31T18:15:00Z', '2025-11-30T18:15:00Z'],
  },
  {
    zone: 'Asia/Kolkata',
    guarantee: 'weeks start on Monday, and the first and last are cut',
    interval: 'weekly',
    range: ['2025-10-01T00:00:00', '2025-10-15T12:00:00'],
    bounds: [
      '2025-10-01T00:00:00+05:30',
      '2025-10-06T00:00:00+05:30',
      '2025-10-13T00:00:00+05:30',
      '2025-10-15T12:00:00+05:30',
    ],
  },
  {
    zone: 'Asia/Kolkata',
    guarantee: 'hours start at half past those of UTC',
    interval: 'hourly',
    range: ['2025-10-01T00:00:00', '2025-10-01T02:00:00'],
    bounds: ['2025-09-30T18:30:00Z', '2025-09-30T19:30:00Z', '2025-09-30T20:30:00Z'],
  },
  {
    zone: 'Australia/Lord_Howe',
    guarantee: 'the half hour that is given back in April is a bucket of its own',
    interval: 'hourly',
    range: ['2025-04-06T00:00:00', '2025-04-06T04:00:00'],
    bounds: [
      '2025-04-06T00:00:00+11:00',
      '2025-04-06T01:00:00+11:00',
      '2025-04-06T01:30:00+10:30',
      '2025-04-06T02:00:00+10:30',
      '2025-04-06T03:00:00+10:30',
      '2025-04-06T04:00:00+10:30',
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    guarantee: 'the hour that begins at half past two in October has half an hour',
    interval: 'hourly',
    range: ['2025-10-05T01:00:00', '2025-10-05T04:00:00'],
    bounds: ['2025-10-04T14:30:00Z', '2025-10-04T15:30:00Z', '2025-10-04T16:00:00Z', '2025-10-04T17:00:00Z'],
  },
  {
    zone: 'Africa/Cairo',
    guarantee: 'the day without a midnight starts at one, and the days after it at midnight again',
    interval: 'daily',
    range: ['2025-04-24T00:00:00', '2025-04-27T00:00:00'],
    bounds: [
      '2025-04-24T00:00:00+02:00',
      '2025-04-25T01:00:00+03:00',
      '2025-04-26T00:00:00+03:00',
      '2025-04-27T00:00:00+03:00',
    ],
  },
  {
    zone: 'Africa/Cairo',
    guarantee: 'the last hour of the last Thursday of October comes twice, and both are its own',
    interval: 'hourly',
    range: ['2025-10-30T22:00:00', '2025-10-31T01:00:00'],
    bounds: [
      '2025-10-30T19:00:00Z',
      '2025-10-30T20:00:00Z',
      '2025-10-30T21:00:00Z',
      '2025-10-30T22:00:00Z',
      '2025-10-30T23:00:00Z',
    ],
  },
  {
    zone: 'America/St_Johns',
    guarantee: 'a clock set back a minute after midnight cuts the hour after that minute, and the day has begun',
    interval: 'hourly',
    range: ['2010-11-06T23:00:00', '2010-11-07T01:00:00'],
    bounds: [
      '2010-11-06T23:00:00-02:30',
      '2010-11-07T00:00:00-02:30',
      '2010-11-06T23:01:00-03:30',
      '2010-11-07T00:00:00-03:30',
      '2010-11-07T01:00:00-03:30',
    ],
  },
  {
    zone: 'America/St_Johns',
    guarantee: 'days have 23 hours in spring and 25 in autumn',
    interval: 'daily',
    range: ['2010-11-06T00:00:00', '2010-11-09T00:00:00'],
    bounds: ['2010-11-06T02:30:00Z', '2010-11-07T02:30:00Z', '2010-11-08T03:30:00Z', '2010-11-09T03:30:00Z'],
  },
  {
    zone: 'Pacific/Chatham',
    guarantee: 'a clock set back from a quarter to four to a quarter to three cuts both hours',
    interval: 'hourly',
    range: ['2025-04-06T02:00:00', '2025-04-06T04:00:00'],
    bounds: [
      '2025-04-06T02:00:00+13:45',
      '2025-04-06T03:00:00+13:45',
      '2025-04-06T02:45:00+12:45',
      '2025-04-06T03:00:00+12:45',
      '2025-04-06T04:00:00+12:45',
    ],
  },
  {
    zone: 'Pacific/Chatham',
    guarantee: 'three quarters of an hour, then a quarter, where it is set forward',
    interval: 'hourly',
    range: ['2025-09-28T02:00:00', '2025-09-28T05:00:00'],
    bounds: ['2025-09-27T13:15:00Z', '2025-09-27T14:00:00Z', '2025-09-27T14:15:00Z', '2025-09-27T15:15:00Z'],
  },
  {
    zone: 'America/Los_Angeles',
    guarantee: 'the hour that comes twice in November is two buckets of one hour',
    interval: 'hourly',
    range: ['2025-11-02T00:00:00', '2025-11-02T03:00:00'],
    bounds: [
      '2025-11-02T00:00:00-07:00',
      '2025-11-02T01:00:00-07:00',
      '2025-11-02T01:00:00-08:00',
      '2025-11-02T02:00:00-08:00',
      '2025-11-02T03:00:00-08:00',
    ],
  },
  {
    zone: 'America/Los_Angeles',
    guarantee: 'the hour that is skipped in March is no bucket, and ranges may start in it',
    interval: 'hourly',
    range: ['2025-03-09T02:30:00', '2025-03-09T05:00:00'],
    bounds: ['2025-03-09T03:00:00-07:00', '2025-03-09T04:00:00-07:00', '2025-03-09T05:00:00-07:00'],
  },
  {
    zone: 'Africa/Casablanca',
    guarantee: 'the month of Ramadan is told in another offset than those around it',
    interval: 'monthly',
    range: ['2025-02-01T00:00:00', '2025-05-01T00:00:00'],
    bounds: ['2025-01-31T23:00:00Z', '2025-03-01T00:00:00Z', '2025-04-01T00:00:00Z', '2025-04-30T23:00:00Z'],
  },
  {
    zone: 'Africa/Casablanca',
    guarantee: 'the hour before its return to +01:00 is followed by the next but one',
    interval: 'hourly',
    range: ['2025-04-06T01:00:00', '2025-04-06T04:00:00'],
    bounds: ['2025-04-06T01:00:00+00:00', '2025-04-06T03:00:00+01:00', '2025-04-06T04:00:00+01:00'],
  },
  {
    zone: 'Asia/Beirut',
    guarantee: 'the last Sunday of March has no midnight',
    interval: 'daily',
    range: ['2025-03-29T00:00:00', '2025-04-01T00:00:00'],
    bounds: [
      '2025-03-29T00:00:00+02:00',
      '2025-03-30T01:00:00+03:00',
      '2025-03-31T00:00:00+03:00',
      '2025-04-01T00:00:00+03:00',
    ],
  },
  {
    zone: 'Asia/Beirut',
    guarantee: 'the Saturday whose last hour comes twice has 25 hours',
    interval: 'daily',
    range: ['2025-10-24T00:00:00', '2025-10-27T00:00:00'],
    bounds: ['2025-10-23T21:00:00Z', '2025-10-24T21:00:00Z', '2025-10-25T22:00:00Z', '2025-10-26T22:00:00Z'],
  },
  {
    zone: 'Pacific/Apia',
    guarantee: 'the day that it skipped is no bucket',
    interval: 'daily',
    range: ['2011-12-28T00:00:00', '2012-01-02T00:00:00'],
    bounds: [
      '2011-12-28T00:00:00-10:00',
      '2011-12-29T00:00:00-10:00',
      '2011-12-31T00:00:00+14:00',
      '2012-01-01T00:00:00+14:00',
      '2012-01-02T00:00:00+14:00',
    ],
  },
  {
    zone: 'Pacific/Apia',
    guarantee: 'the week of the skipped day has six',
    interval: 'weekly',
    range: ['2011-12-26T00:00:00', '2012-01-09T00:00:00'],
    bounds: ['2011-12-26T10:00:00Z', '2012-01-01T10:00:00Z', '2012-01-08T10:00:00Z'],
  },
];

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await BillingFixture.start();
});
afterAll(() => fixture.stop());

describe('buckets of a zone', () => {
  it.each(scenarios)('$zone, $interval from $range.0: $guarantee', async ({ zone: name, interval, range, bounds }) => {
    const [start_date, end_date] = range;
    const period = readPeriod({ start_date, end_date, interval, timezone: 'local' }, name);
    const shown = period.bounds.map((ms) => period.zone.format(ms));
    expect(period.bounds).toEqual(bounds.map((bound) => Date.parse(bound)));
    expect(shown.map((text) => Date.parse(text))).toEqual(period.bounds);
    for (const [index, bound] of bounds.entries()) if (!bound.endsWith('Z')) expect(shown[index]).toBe(bound);
    expect(shown.map((text) => text.slice(0, 19))).toEqual(await clocksByPostgres(name, period.bounds));
  });
});

/** What PostgreSQL, which has a tz database of its own, says that the clocks show. */
async function clocksByPostgres(zone: string, instants: number[]): Promise<string[]> {
  const rows = await fixture.query<{ clock: string }>(
    `SELECT to_char(to_timestamp(seconds) AT TIME ZONE $1, 'YYYY-MM-DD"T"HH24:MI:SS') AS clock
     FROM unnest($2::bigint[]) WITH ORDINALITY AS instant(seconds, position) ORDER BY position`,
    [zone, instants.map((ms) => ms / 1000)],
  );
  return rows.map(({ clock }) => clock);
}
