import { describe, expect, it } from '@jest/globals';
import type { BillingRange } from '@atoll/contracts/billing';
import { isAppError } from '@atoll/errors';
import { readMonths, readPeriod, type BillingPeriod } from './billing-range.js';

const day: BillingRange = {
  start_date: '2025-03-10T00:00:00',
  end_date: '2025-03-11T00:00:00',
  interval: 'hourly',
  timezone: 'utc',
};

function period(range: Partial<BillingRange>, profileZone = 'UTC'): BillingPeriod {
  return readPeriod({ ...day, ...range }, profileZone);
}

/** What a range is refused with: the segments and the sentences. */
function faultsOf(read: () => unknown): unknown {
  try {
    read();
  } catch (error) {
    if (isAppError(error) && error.code === 'invalid_input')
      return error.details.errors?.map(({ path, message }) => [path, message]);
    throw error;
  }
  return 'taken';
}

const later = [['end_date', 'end_date must be later than start_date']];

describe('the range of a report', () => {
  it('is in UTC unless it is local, which is the zone of the profile', () => {
    const start = (range: Partial<BillingRange>) => {
      const { zone, startMs } = period(range, 'Asia/Kathmandu');
      return [zone.name, zone.format(startMs)];
    };
    expect(start({ timezone: 'utc' })).toEqual(['UTC', '2025-03-10T00:00:00Z']);
    expect(start({ timezone: undefined })).toEqual(['UTC', '2025-03-10T00:00:00Z']);
    expect(start({ timezone: 'local' })).toEqual(['Asia/Kathmandu', '2025-03-10T00:00:00+05:45']);
    const message = 'timezone must be a time zone that this platform knows, such as Asia/Kathmandu';
    expect(faultsOf(() => period({ timezone: 'local' }, 'Mars/Olympus'))).toEqual([['timezone', message]]);
  });

  it('is refused where it holds no real date, naming each segment', () => {
    const allowed = 'must be a real date in the years 2000 to 2199';
    const unreal = [
      '2025-02-29T00:00:00',
      '2025-02-30T00:00:00',
      '2025-04-31T00:00:00',
      '1900-02-29T00:00:00',
      '2025-03-10T24:00:00',
    ];
    const beyond = ['1999-12-31T23:59:59', '2200-01-01T00:00:00', '0001-01-01T00:00:00', '9999-12-31T00:00:00'];
    const misshapen = [
      '',
      '2025-03-10',
      '2025-03-10T00:00:00Z',
      '2025-03-10T00:00:00+05:45',
      '2025-3-10T00:00:00',
      'yesterday',
    ];
    for (const date of [...unreal, ...beyond, ...misshapen]) {
      expect([date, faultsOf(() => period({ start_date: date }))]).toEqual([
        date,
        [['start_date', `start_date ${allowed}`]],
      ]);
      expect([date, faultsOf(() => period({ end_date: date }))]).toEqual([date, [['end_date', `end_date ${allowed}`]]]);
    }
    expect(faultsOf(() => period({ start_date: '2025-02-30T00:00:00', end_date: '2025-02-31T00:00:00' }))).toEqual([
      ['start_date', `start_date ${allowed}`],
      ['end_date', `end_date ${allowed}`],
    ]);
    expect(faultsOf(() => period({ start_date: '2024-02-29T00:00:00', end_date: '2024-02-29T00:00:01' }))).toBe(
      'taken',
    );
    expect(faultsOf(() => period({ start_date: '2199-12-31T00:00:00', end_date: '2199-12-31T23:59:59' }))).toBe(
      'taken',
    );
  });

  it('is refused where it ends with its start or before it', () => {
    expect(faultsOf(() => period({ end_date: day.start_date }))).toEqual(later);
    expect(faultsOf(() => period({ end_date: '2025-03-09T23:59:59' }))).toEqual(later);
    expect(faultsOf(() => period({ end_date: '2025-03-10T00:00:01' }))).toBe('taken');
  });

  it('is refused where clocks in its zone skip all of it', () => {
    const within = { start_date: '2025-04-25T00:10:00', end_date: '2025-04-25T00:50:00', timezone: 'local' } as const;
    const message = 'end_date must be later than start_date: clocks in Africa/Cairo skip the time between them';
    expect(faultsOf(() => period(within, 'Africa/Cairo'))).toEqual([['end_date', message]]);
    expect(faultsOf(() => period({ ...within, end_date: '2025-04-25T01:00:00' }, 'Africa/Cairo'))).toEqual([
      ['end_date', message],
    ]);
    const { startMs, endMs } = period({ ...within, end_date: '2025-04-25T01:00:01' }, 'Africa/Cairo');
    expect(endMs - startMs).toBe(1000);
  });

  const limits = [
    {
      interval: 'hourly',
      words: '366 days',
      start: '2025-03-10T00:00:00',
      latest: '2026-03-11T00:00:00',
      over: '2026-03-11T00:00:01',
    },
    {
      interval: 'daily',
      words: '3 years',
      start: '2025-03-10T12:30:00',
      latest: '2028-03-10T12:30:00',
      over: '2028-03-10T12:30:01',
    },
    {
      interval: 'weekly',
      words: '5 years',
      start: '2025-03-10T00:00:00',
      latest: '2030-03-10T00:00:00',
      over: '2030-03-10T00:00:01',
    },
    {
      interval: 'monthly',
      words: '10 years',
      start: '2025-03-10T00:00:00',
      latest: '2035-03-10T00:00:00',
      over: '2035-03-10T00:00:01',
    },
    // Three years after 29 February is 1 March, there being no 29 February then.
    {
      interval: 'daily',
      words: '3 years',
      start: '2024-02-29T00:00:00',
      latest: '2027-03-01T00:00:00',
      over: '2027-03-01T00:00:01',
    },
  ] as const;

  it.each(limits)(
    'is at most $words where it is $interval, from $start',
    ({ interval, words, start, latest, over }) => {
      // In a zone whose clocks are changed between the two: it is the wall clock that counts.
      const read = (end: string) =>
        faultsOf(() => period({ start_date: start, end_date: end, interval, timezone: 'local' }, 'Asia/Beirut'));
      expect(read(latest)).toBe('taken');
      expect(read(over)).toEqual([
        ['end_date', `end_date must be at most ${words} after start_date where interval is ${interval}`],
      ]);
    },
  );

  it('tells whether its ends cut a bucket', () => {
    const cuts = (start: string, end: string, interval: BillingRange['interval'], zone = 'UTC') => {
      const { startsOnGrid, endsOnGrid } = period(
        { start_date: start, end_date: end, interval, timezone: 'local' },
        zone,
      );
      return [startsOnGrid, endsOnGrid];
    };
    expect(cuts('2025-03-10T05:00:00', '2025-03-10T07:00:00', 'hourly', 'Asia/Kathmandu')).toEqual([true, true]);
    expect(cuts('2025-03-10T05:15:00', '2025-03-10T07:00:01', 'hourly')).toEqual([false, false]);
    expect(cuts('2025-03-10T00:00:00', '2025-03-11T07:00:00', 'daily')).toEqual([true, false]);
    // A Monday, and a Wednesday.
    expect(cuts('2025-03-10T00:00:00', '2025-03-19T00:00:00', 'weekly')).toEqual([true, false]);
    expect(cuts('2025-03-11T00:00:00', '2025-04-01T00:00:00', 'monthly')).toEqual([false, true]);
    // Half past midnight does not exist there: the day starts at one.
    expect(cuts('2025-04-25T00:30:00', '2025-04-26T00:00:00', 'daily', 'Africa/Cairo')).toEqual([true, true]);
    // Half past two on Lord Howe, where two o'clock becomes half past.
    expect(cuts('2025-10-05T02:30:00', '2025-10-05T03:00:00', 'hourly', 'Australia/Lord_Howe')).toEqual([true, true]);
    expect(cuts('2025-10-05T00:00:00', '2025-10-05T02:20:00', 'hourly', 'Australia/Lord_Howe')).toEqual([true, true]);
  });

  it('is one bucket where it lies within one', () => {
    for (const interval of ['hourly', 'daily', 'weekly', 'monthly'] as const) {
      const { bounds, startMs, endMs, startsOnGrid, endsOnGrid } = period({
        start_date: '2025-03-12T10:10:00',
        end_date: '2025-03-12T10:20:00',
        interval,
      });
      expect([bounds, startsOnGrid, endsOnGrid]).toEqual([[startMs, endMs], false, false]);
    }
  });
});

describe('the months of a comparison', () => {
  const months = { start_month: '2025-01', end_month: '2025-10' };

  it('are whole months of the zone', () => {
    const shown = (timezone?: 'local' | 'utc') => {
      const { zone, start, end } = readMonths({ ...months, timezone }, 'Africa/Cairo');
      return [start, end].map(({ startMs, endMs }) => [zone.format(startMs), zone.format(endMs)]);
    };
    expect(shown()).toEqual([
      ['2025-01-01T00:00:00Z', '2025-02-01T00:00:00Z'],
      ['2025-10-01T00:00:00Z', '2025-11-01T00:00:00Z'],
    ]);
    expect(shown('local')).toEqual([
      ['2025-01-01T00:00:00+02:00', '2025-02-01T00:00:00+02:00'],
      ['2025-10-01T00:00:00+03:00', '2025-11-01T00:00:00+02:00'],
    ]);
  });

  it('may be the last of all, and end the year', () => {
    const { zone, start, end } = readMonths({ start_month: '2000-01', end_month: '2199-12' }, 'UTC');
    expect([start.startMs, start.endMs, end.startMs, end.endMs].map((ms) => zone.format(ms))).toEqual([
      '2000-01-01T00:00:00Z',
      '2000-02-01T00:00:00Z',
      '2199-12-01T00:00:00Z',
      '2200-01-01T00:00:00Z',
    ]);
  });

  it('are refused where the second is not the later, or one is no month that billing knows', () => {
    const faults = (start_month: string, end_month: string) =>
      faultsOf(() => readMonths({ start_month, end_month }, 'UTC'));
    for (const end of ['2025-01', '2024-12'])
      expect(faults('2025-01', end)).toEqual([['end_month', 'end_month must be later than start_month']]);
    const allowed = 'must be a month in the years 2000 to 2199';
    for (const month of ['2025-13', '2025-00', '1999-12', '2200-01', '2025-1', '2025', '']) {
      expect(faults(month, '2025-01')).toEqual([['start_month', `start_month ${allowed}`]]);
      expect(faults('2025-01', month)).toEqual([['end_month', `end_month ${allowed}`]]);
    }
  });
});
