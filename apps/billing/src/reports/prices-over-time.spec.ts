import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { prices } from '@atoll/contracts/billing';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam, brief } from './report-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const aDay = { from: '2025-03-10', to: '2025-03-11' };

describe('a price that changes within an hour', () => {
  it('counts for the part of the hour that it holds', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('vm', '1', '2025-01-01');
    await team.price('vm', '4', '2025-03-10T01:45:00');
    await team.holds('vm', [
      ['2025-03-10', 2],
      ['2025-03-10T03:00:00', 0],
    ]);
    expect(brief(await team.report({ from: '2025-03-10', to: '2025-03-10T04:00:00', interval: 'hourly' }))).toEqual([
      ['2025-03-10T00:00:00Z', '2', 2],
      ['2025-03-10T01:00:00Z', '3.5', 2],
      ['2025-03-10T02:00:00Z', '8', 2],
      ['2025-03-10T03:00:00Z', '0'],
    ]);
  });

  it('counts as of its start when it is told afterwards', async () => {
    const team = await BilledTeam.of(billing);
    await team.holds('vm', [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
    ]);
    await team.price('vm', '1', '2025-01-01');
    expect((await team.report(aDay)).total_cost).toBe('24');
    await team.price('vm', '3', '2025-03-10T12:00:00');
    expect((await team.report(aDay)).total_cost).toBe('48');
    await team.price('vm', '2', '2025-03-10T12:00:00');
    expect((await team.report(aDay)).total_cost).toBe('36');
    // The one that was replaced lies behind its successor by now, as it may after a vacuum.
    await billing.query('UPDATE price SET replaced_at = replaced_at WHERE replaced_at IS NOT NULL');
    expect((await team.report(aDay)).total_cost).toBe('36');
  });
});

describe('a team’s own price', () => {
  it('goes before the general one from its start on, and before general ones that come later', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('vm', '10', '2025-01-01');
    await team.price('vm', '1', '2025-03-10T06:00:00', 'team');
    await team.price('vm', '100', '2025-03-10T12:00:00');
    await team.holds('vm', [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
    ]);
    expect((await team.report(aDay)).total_cost).toBe('78');
  });

  it('is that team’s alone', async () => {
    const [team, other] = [await BilledTeam.of(billing), await BilledTeam.of(billing)];
    await team.price('vm', '10', '2025-01-01');
    const sku = team.sku('vm');
    const own = { sku, unit: 'unit', unit_price: '1', valid_from: '2025-01-01T00:00:00Z', force: true };
    await billing.call(prices.create, { ...own, team_id: other.id });
    const aDayLong = [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
    ] as const;
    await team.holds('vm', aDayLong);
    await other.holds('vm', aDayLong, { sku });
    expect([(await team.report(aDay)).total_cost, (await other.report(aDay)).total_cost]).toEqual(['240', '24']);
  });
});

describe('usage that has no price yet', () => {
  it('costs nothing, and is named with its hours until the first price', async () => {
    const team = await BilledTeam.of(billing, 'training');
    await team.holds(
      'vm',
      [
        ['2025-03-10', 2],
        ['2025-03-11', 0],
      ],
      { resource_id: 'vm:b' },
    );
    await team.holds(
      'vm',
      [
        ['2025-03-10', 1],
        ['2025-03-10T12:00:00', 0],
      ],
      { resource_id: 'vm:a' },
    );
    const before = await team.report(aDay);
    expect(before.unpriced).toEqual([
      { resource_id: 'vm:a', kind: 'vm', sku: team.sku('vm'), unit_hours: 12 },
      { resource_id: 'vm:b', kind: 'vm', sku: team.sku('vm'), unit_hours: 48 },
    ]);
    expect(before.total_cost).toBe('0');
    expect(before.intervals[0]?.items).toEqual([
      { kind: 'vm', sku: team.sku('vm'), unit: null, unit_hours: 60, cost: '0' },
    ]);
    await team.price('vm', '0.5', '2025-03-10T18:00:00');
    const after = await team.report(aDay);
    expect(after.unpriced.map(({ resource_id, unit_hours }) => [resource_id, unit_hours])).toEqual([
      ['vm:a', 12],
      ['vm:b', 36],
    ]);
    expect(after.intervals[0]?.items).toEqual([
      { kind: 'vm', sku: team.sku('vm'), unit: 'unit', unit_hours: 60, cost: '6' },
    ]);
  });

  it('is not named where it is that of a pod, whose slices have the price', async () => {
    const team = await BilledTeam.of(billing, 'training');
    await team.holds('pod', [['2025-03-10', 1]], { kind: 'pod' });
    const report = await team.report(aDay);
    expect([report.unpriced, report.total_cost]).toEqual([[], '0']);
    expect(report.intervals[0]?.items).toMatchObject([{ kind: 'pod', unit_hours: 24, cost: '0' }]);
  });

  it('is named once for a resource that moved between workspaces, and in reports by workspace too', async () => {
    const team = await BilledTeam.of(billing, 'training');
    await team.holds('vm', [['2025-03-10', 1]]);
    await team.holds(
      'vm',
      [
        ['2025-03-10T06:00:00', 1],
        ['2025-03-10T12:00:00', 0],
      ],
      { workspace_id: team.workspace('training') },
    );
    const named = { resource_id: 'vm:1', kind: 'vm', sku: team.sku('vm') };
    expect((await team.byWorkspace(aDay)).unpriced).toEqual([{ ...named, unit_hours: 12 }]);
    expect((await team.report(aDay)).unpriced).toEqual([{ ...named, unit_hours: 12 }]);
    expect((await team.ofWorkspace('training', aDay)).unpriced).toEqual([{ ...named, unit_hours: 6 }]);
  });

  it('is not named where the price is zero', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('vm', '0', '2025-01-01');
    await team.holds('vm', [
      ['2025-03-10', 1],
      ['2025-03-11', 0],
    ]);
    expect(await team.report(aDay)).toMatchObject({ total_cost: '0', unpriced: [] });
  });
});
