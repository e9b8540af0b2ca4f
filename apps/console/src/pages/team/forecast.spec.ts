import { expect, it } from '@jest/globals';
import { forecast } from './forecast.js';

const hour = (start: string, end: string, cost: string) => ({ start, end, cost });

it('a month at the present rate is what it cost so far and the rate of the last 24 hours until its end', () => {
  const hours = [
    hour('2026-11-28T00:00:00Z', '2026-11-28T01:00:00Z', '100'),
    hour('2026-11-28T12:00:00Z', '2026-11-29T00:00:00Z', '6'),
    hour('2026-11-29T00:00:00Z', '2026-11-29T12:00:00Z', '6'),
  ];
  expect(forecast(50, hours, '2026-11-29T12:00:00Z', '2026-12-01', 'UTC')).toEqual({ total: 68, perDay: 12 });
});

it('ends with the month of the zone', () => {
  const hours = [hour('2026-11-30T00:00:00+05:45', '2026-12-01T00:00:00+05:45', '12')];
  expect(forecast(12, hours, '2026-11-30T06:15:00Z', '2026-12-01', 'Asia/Kathmandu').total).toBe(24);
});

it('ends with a month in which the clocks change later', () => {
  const hours = [hour('2026-10-23T00:00:00+02:00', '2026-10-24T00:00:00+02:00', '24')];
  // 8 days and the hour that comes twice.
  expect(forecast(0, hours, '2026-10-23T22:00:00Z', '2026-11-01', 'Europe/Berlin').total).toBe(193);
});

it('is what it cost so far where nothing runs', () => {
  expect(forecast(50, [], '2026-11-29T12:00:00Z', '2026-12-01', 'UTC')).toEqual({ total: 50, perDay: 0 });
});
