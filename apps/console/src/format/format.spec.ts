import { expect, it } from '@jest/globals';
import { bucketNames, change, decimalsOf, money, unitPrice } from './format.js';

const hours = (from: string, count: number) =>
  Array.from({ length: count }, (_, at) => new Date(Date.parse(from) + at * 3_600_000).toISOString());

it.each([
  ['Europe/Oslo', '2026-10-24T22:00:00Z', 25],
  ['Europe/Oslo', '2026-03-28T23:00:00Z', 23],
  ['Australia/Lord_Howe', '2026-04-04T13:00:00Z', 24],
  ['UTC', '2026-10-25T00:00:00Z', 24],
])('the hours of a day in %s from %s have %i names', (zone, from, count) => {
  expect(new Set(bucketNames(hours(from, count), 'hourly', zone)).size).toBe(count);
});

it('only the two hours that the clock shows alike are named with their offset', () => {
  const names = bucketNames(hours('2026-10-24T22:00:00Z', 25), 'hourly', 'Europe/Oslo');
  expect(names.flatMap((name, at) => (name.includes('GMT') ? [[at, name.slice(-5)]] : []))).toEqual([
    [2, 'GMT+2'],
    [3, 'GMT+1'],
  ]);
});

it.each([
  [25, 'USD', 2],
  [0.25, 'USD', 2],
  [0.125, 'USD', 3],
  [0.0375, 'USD', 4],
  [0.000125, 'USD', 6],
  [0, 'USD', 2],
  [1 / 3, 'USD', 9],
  [25, 'JPY', 0],
  [2.5, 'JPY', 1],
  [25, 'KWD', 3],
])('amounts that are multiples of %d %s have %i decimals', (step, currency, decimals) => {
  expect(decimalsOf(step, currency)).toBe(decimals);
});

it.each([
  ['JPY', '1235', '1235', '12345678'],
  ['USD', '123457', '123457', '12345678'],
  ['KWD', '1234568', '1234568', '12345678'],
])('an amount in %s has the decimals of its currency, and a price all of its own', (currency, ...digits) => {
  const shown = [money, change, unitPrice].map((format) => format('1234.5678', currency));
  expect(shown.map((text) => text.replaceAll(/\D/g, ''))).toEqual(digits);
});
