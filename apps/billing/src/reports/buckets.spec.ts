import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam, brief } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const hourMs = 3_600_000;
const wallOf = (ms: number) => new Date(ms).toISOString().slice(0, 19);
const hoursBetween = (start: string, end: string) => (Date.parse(end) - Date.parse(start)) / hourMs;

describe('a resource that is held over the end of a month', () => {
  it('counts in each month for its part, by whatever interval', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.holds('vm', [
      ['2025-01-31T12:00:00', 1],
      ['2025-03-02', 0],
    ]);
    expect(brief(await team.report({ from: '2025-01-01', to: '2025-04-01', interval: 'monthly' }))).toEqual([
      ['2025-01-01T00:00:00Z', '12', 12],
      ['2025-02-01T00:00:00Z', '672', 672],
      ['2025-03-01T00:00:00Z', '24', 24],
    ]);
    expect((await team.report({ from: '2025-02-10', to: '2025-02-11' })).total_cost).toBe('24');
    expect(
      (await team.report({ from: '2025-02-28T23:00:00', to: '2025-03-01T01:00:00', interval: 'hourly' })).total_cost,
    ).toBe('2');
  });

  it('counts by months and days of the zone asked for', async () => {
    const asked = { from: '2025-01-01', to: '2025-04-01', interval: 'monthly' as const, zone: 'Asia/Kathmandu' };
    const report = await team.report(asked);
    expect(report).toMatchObject({
      timezone: 'Asia/Kathmandu',
      start: '2025-01-01T00:00:00+05:45',
      end: '2025-04-01T00:00:00+05:45',
    });
    expect(brief(report)).toEqual([
      ['2025-01-01T00:00:00+05:45', '6.25', 6.25],
      ['2025-02-01T00:00:00+05:45', '672', 672],
      ['2025-03-01T00:00:00+05:45', '29.75', 29.75],
    ]);
  });
});

describe('the buckets of a range', () => {
  it('are all there, and say which of them the range cuts', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.holds('vm', [
      ['2025-03-01', 1],
      ['2025-03-12', 0],
    ]);
    const report = await team.report({ from: '2025-03-10T18:00:00', to: '2025-03-14T06:00:00' });
    expect(
      report.intervals.map(({ start, end, partial, cost, items }) => [start, end, partial, cost, items.length]),
    ).toEqual([
      ['2025-03-10T18:00:00Z', '2025-03-11T00:00:00Z', true, '6', 1],
      ['2025-03-11T00:00:00Z', '2025-03-12T00:00:00Z', false, '24', 1],
      ['2025-03-12T00:00:00Z', '2025-03-13T00:00:00Z', false, '0', 0],
      ['2025-03-13T00:00:00Z', '2025-03-14T00:00:00Z', false, '0', 0],
      ['2025-03-14T00:00:00Z', '2025-03-14T06:00:00Z', true, '0', 0],
    ]);
  });

  it('are there for a team that never used anything', async () => {
    const idle = await BilledTeam.of(billing);
    const report = await idle.report({ from: '2025-03-10', to: '2025-03-12' });
    expect(report).toMatchObject({
      scope: { team_id: idle.id },
      currency: 'USD',
      timezone: 'UTC',
      interval: 'daily',
      total_cost: '0',
      unpriced: [],
    });
    expect(brief(report)).toEqual([
      ['2025-03-10T00:00:00Z', '0'],
      ['2025-03-11T00:00:00Z', '0'],
    ]);
    expect(await idle.byWorkspace({ from: '2025-03-10', to: '2025-03-12' })).toMatchObject({
      workspaces: [],
      total_cost: '0',
    });
  });
});

describe('a resource that is held still', () => {
  it('counts up to the moment of the report, in the bucket of that moment, and in none of the future', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    const hour = Math.floor(Date.now() / hourMs) * hourMs;
    await team.holds('vm', [[wallOf(hour - 2 * hourMs), 1]]);
    const { as_of, intervals } = await team.report({
      from: wallOf(hour - hourMs),
      to: wallOf(hour + 4 * hourMs),
      interval: 'hourly',
    });
    for (const { start, end, partial, items } of intervals) {
      const held = Math.max(0, Math.min(hoursBetween(start, as_of), 1));
      expect(items.map(({ unit_hours }) => unit_hours)).toEqual(held > 0 ? [expect.closeTo(held, 8)] : []);
      expect(partial).toBe(Date.parse(start) <= Date.parse(as_of) && Date.parse(as_of) < Date.parse(end));
    }
  });

  it('counts nothing in a range that has not begun', async () => {
    const report = await team.report({ from: '2150-01-01', to: '2150-01-03' });
    expect(report.total_cost).toBe('0');
    expect(report.intervals.map(({ partial, items }) => [partial, items])).toEqual([
      [false, []],
      [false, []],
    ]);
  });
});
