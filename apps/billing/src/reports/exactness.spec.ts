import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const aDay = { from: '2025-03-10', to: '2025-03-11' };
const costsOf = ({ intervals }: { intervals: { cost: string }[] }) => intervals.map(({ cost }) => cost);

describe('costs too small to be shown', () => {
  it('are rounded once, and what is shown adds up: three thirds are one', async () => {
    team = await BilledTeam.of(billing);
    // 20 minutes an hour at 10^-9: a third of the smallest amount each hour.
    await team.price('vm', '0.000000001', '2025-01-01');
    await team.holds(
      'vm',
      ['00', '01', '02'].flatMap(
        (hour) =>
          [
            [`2025-03-10T${hour}:00:00`, 1],
            [`2025-03-10T${hour}:20:00`, 0],
          ] as const,
      ),
    );
    const report = await team.report({ from: '2025-03-10', to: '2025-03-10T04:00:00', interval: 'hourly' });
    expect(report.total_cost).toBe('0.000000001');
    expect(costsOf(report)).toEqual(['0.000000001', '0', '0', '0']);
    expect(report.intervals.map(({ items }) => items.map(({ cost }) => cost))).toEqual([
      ['0.000000001'],
      ['0'],
      ['0'],
      [],
    ]);
  });

  it('are rounded half up in all', async () => {
    for (const [minutes, total] of [
      ['29:59.999', '0'],
      ['30:00.000', '0.000000001'],
    ] as const) {
      team = await BilledTeam.of(billing);
      await team.price('vm', '0.000000001', '2025-01-01');
      await team.holds('vm', [
        ['2025-03-10', 1],
        [`2025-03-10T00:${minutes}`, 0],
      ]);
      expect((await team.report(aDay)).total_cost).toBe(total);
    }
  });

  it('add up through items and through groups', async () => {
    team = await BilledTeam.of(billing, 'b', 'c');
    for (const [n, workspace] of ['default', 'b', 'c'].entries()) {
      for (const sku of ['one', 'two']) {
        await team.price(sku, '0.000000001', '2025-01-01');
        const place = { resource_id: `vm:${n}`, workspace_id: team.workspace(workspace) };
        await team.holds(
          sku,
          [
            ['2025-03-10', 1],
            ['2025-03-10T00:20:00', 0],
          ],
          place,
        );
      }
    }
    const report = await team.byWorkspace(aDay);
    expect(report.total_cost).toBe('0.000000002');
    expect(report.workspaces.map(({ workspace_name, total_cost }) => [workspace_name, total_cost])).toEqual([
      ['b', '0.000000001'],
      ['c', '0.000000001'],
      ['default', '0'],
    ]);
    expect(report.workspaces.map(({ intervals }) => intervals[0]?.items.map(({ cost }) => cost))).toEqual([
      ['0.000000001', '0'],
      ['0.000000001', '0'],
      ['0', '0'],
    ]);
    // The report's own items are the sums of what the groups show.
    expect(report.intervals[0]).toMatchObject({ cost: '0.000000002', items: [{ cost: '0.000000002' }, { cost: '0' }] });
    expect((await team.report(aDay)).intervals[0]?.items.map(({ cost }) => cost)).toEqual([
      '0.000000001',
      '0.000000001',
    ]);
  });
});

describe('the largest amounts', () => {
  it('lose no digit', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '999999999.999999999', '2025-01-01');
    await team.holds('vm', [
      ['2025-03-01', '999999999.999999999'],
      ['2025-04-01T00:00:00.001', 0],
    ]);
    const report = await team.report({ from: '2025-03-01', to: '2025-04-01', interval: 'monthly' });
    // 744 × (10^9 − 10^-9)², all but 7 × 10^-16 of it.
    expect(report.total_cost).toBe('743999999999999998512');
    expect(report.intervals[0]?.items[0]).toMatchObject({ cost: report.total_cost, unit_hours: 744_000_000_000 });
  });
});
