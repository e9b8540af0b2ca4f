import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { instantAt, wallTime } from './zone.js';

const zones = ['UTC', 'Europe/Oslo', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia', 'Australia/Lord_Howe'];

describe('a wall-clock time', () => {
  it('law: an instant is shown at its wall-clock time, and is the instant of it where the time occurs once', () => {
    const minute = fc
      .integer({ min: Date.UTC(2013) / 60_000, max: Date.UTC(2040) / 60_000 })
      .map((value) => new Date(value * 60_000).toISOString());
    fc.assert(
      fc.property(minute, fc.constantFrom(...zones), (instant, zone) => {
        const wall = wallTime(instant, zone);
        const found = instantAt(wall, zone) ?? '';
        expect(wallTime(found, zone)).toBe(wall);
        expect(found <= instant).toBe(true);
      }),
    );
  });

  it.each([
    ['2026-03-29T02:30', 'Europe/Oslo', '2026-03-29T01:00:00.000Z'],
    ['2026-10-25T02:30', 'Europe/Oslo', '2026-10-25T00:30:00.000Z'],
    ['2026-11-22T08:51', 'Asia/Kolkata', '2026-11-22T03:21:00.000Z'],
    ['', 'UTC', undefined],
    ['2026-11-22', 'UTC', undefined],
  ])('%s in %s is %s', (wall, zone, instant) => {
    expect(instantAt(wall, zone)).toBe(instant);
  });
});
