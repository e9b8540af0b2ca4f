import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { billingReports } from '@atoll/contracts/billing';
import { BillingFixture, memberOf } from '../billing-fixture.js';
import { BilledTeam } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

describe('two months', () => {
  it('that differ in quantity and in price say how much each of them did', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.price('vm', '2', '2025-04-01');
    await team.holds('vm', [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
      ['2025-04-10', 3],
      ['2025-04-11', 0],
    ]);
    const item = { kind: 'vm', sku: team.sku('vm') };
    expect(await team.compare('2025-03', '2025-04')).toEqual({
      scope: { team_id: team.id },
      currency: 'USD',
      timezone: 'UTC',
      as_of: expect.any(String),
      start_month: {
        month: '2025-03',
        total_cost: '24',
        items: [{ ...item, unit: 'unit', unit_hours: 24, cost: '24' }],
      },
      end_month: {
        month: '2025-04',
        total_cost: '144',
        items: [{ ...item, unit: 'unit', unit_hours: 72, cost: '144' }],
      },
      change: { amount: '120', percent: 500 },
      items: [{ ...item, start_cost: '24', end_cost: '144', change: '120', price_effect: '72', quantity_effect: '48' }],
    });
  });

  it('of which the second cost less have negative changes, rounded to add up', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.price('vm', '0.333333333', '2025-03-20');
    await team.holds('vm', [
      ['2025-03-10', 7],
      ['2025-03-10T00:00:00.007', 0],
      ['2025-04-10', 3],
      ['2025-04-10T00:00:00.001', 0],
    ]);
    const { change, items } = await team.compare('2025-03', '2025-04');
    // 7 units × 7 ms at 1 an hour are 13611.11 × 10^-9; 3 units × 1 ms at a third of it 277.78 × 10^-9; 46 unit-ms less
    // at the old price 12777.78 × 10^-9.
    expect(items).toMatchObject([
      {
        start_cost: '0.000013611',
        end_cost: '0.000000278',
        change: '-0.000013333',
        quantity_effect: '-0.000012778',
        price_effect: '-0.000000555',
      },
    ]);
    expect(change).toEqual({ amount: '-0.000013333', percent: -97.96 });
  });

  it('with items in one of them alone say that all is quantity, and no percent of nothing', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.price('gb', '1', '2025-01-01');
    await team.holds('vm', [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
    ]);
    await team.holds('gb', [
      ['2025-04-10', 1],
      ['2025-04-10T12:00:00', 0],
    ]);
    const { change, items } = await team.compare('2025-03', '2025-04');
    expect(change).toEqual({ amount: '-12', percent: -50 });
    expect(items).toEqual([
      {
        kind: 'vm',
        sku: team.sku('gb'),
        start_cost: '0',
        end_cost: '12',
        change: '12',
        price_effect: '0',
        quantity_effect: '12',
      },
      {
        kind: 'vm',
        sku: team.sku('vm'),
        start_cost: '24',
        end_cost: '0',
        change: '-24',
        price_effect: '0',
        quantity_effect: '-24',
      },
    ]);
    expect((await team.compare('2025-02', '2025-03')).change).toEqual({ amount: '24', percent: null });
    expect(await team.compare('2024-01', '2024-02')).toMatchObject({
      change: { amount: '0', percent: null },
      items: [],
    });
  });

  it('are those of the caller’s zone where it is asked for', async () => {
    team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.holds('vm', [
      ['2025-03-31T12:00:00', 1],
      ['2025-04-01', 0],
    ]);
    const query = { team_id: team.id, start_month: '2025-03', end_month: '2025-04', timezone: 'local' as const };
    const report = await billing.call(
      billingReports.comparison,
      query,
      memberOf(team.id, 'billing_viewer', 'Asia/Kathmandu'),
    );
    expect([report.timezone, report.start_month.total_cost, report.end_month.total_cost]).toEqual([
      'Asia/Kathmandu',
      '6.25',
      '5.75',
    ]);
  });
});
