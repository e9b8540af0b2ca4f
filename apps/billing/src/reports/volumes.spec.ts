import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { UsageEvent } from '@atoll/contracts/billing';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam, brief } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const twoDays = { from: '2025-03-10', to: '2025-03-12' };
const volume = (id: number, more: Partial<UsageEvent> = {}): Partial<UsageEvent> => ({
  resource_id: `shared_storage:${id}`,
  kind: 'shared_storage',
  ...more,
});

describe('the report of shared storage', () => {
  it('has of several details that were told of one instant those of the greatest sequence', async () => {
    team = await BilledTeam.of(billing);
    const told = (id: string, sequence: number) =>
      team.holds(
        'storage',
        [['2025-03-10', 100]],
        volume(9, { id, sequence, resource_name: id, attributes: { used_size_in_gb: sequence } }),
      );
    await told('b, first', 1);
    await told('a, second', 2);
    expect((await team.storage(twoDays)).volumes).toMatchObject([{ name: 'a, second', used_size_in_gb: 2 }]);
  });

  it('has each volume with its size over time, and how much of it is used as told last', async () => {
    team = await BilledTeam.of(billing);
    await team.price('storage', '0.01', '2025-01-01');
    const told = { resource_name: 'datasets', region_id: '1', attributes: { used_size_in_gb: 12.5 } };
    await team.holds('storage', [['2025-03-10', 100]], volume(7, told));
    await team.holds(
      'storage',
      [
        ['2025-03-11', 200],
        ['2025-03-12', 0],
      ],
      volume(7, { ...told, attributes: { used_size_in_gb: 150.123456789 } }),
    );
    await team.holds(
      'storage',
      [
        ['2025-03-11', '0.5'],
        ['2025-03-12', 0],
      ],
      volume(8),
    );
    await team.holds('storage', [
      ['2025-03-10', 1],
      ['2025-03-12', 0],
    ]);
    const report = await team.storage(twoDays);
    expect(report.total_cost).toBe('72.12');
    expect(report.volumes).toMatchObject([
      {
        volume_id: '7',
        name: 'datasets',
        region_id: '1',
        used_size_in_gb: 150.123456789,
        gb_hours: 7200,
        total_cost: '72',
      },
      { volume_id: '8', name: null, region_id: null, used_size_in_gb: null, gb_hours: 12, total_cost: '0.12' },
    ]);
    expect(report.volumes.map(brief)).toEqual([
      [
        ['2025-03-10T00:00:00Z', '24', 2400],
        ['2025-03-11T00:00:00Z', '48', 4800],
      ],
      [
        ['2025-03-10T00:00:00Z', '0'],
        ['2025-03-11T00:00:00Z', '0.12', 12],
      ],
    ]);
    expect(brief(report)).toEqual([
      ['2025-03-10T00:00:00Z', '24', 2400],
      ['2025-03-11T00:00:00Z', '48.12', 4812],
    ]);
  });

  it('is of one region where it is asked for', async () => {
    expect((await team.storage({ ...twoDays, region: '1' })).volumes.map(({ volume_id }) => volume_id)).toEqual(['7']);
  });

  it('names volumes that have no price', async () => {
    team = await BilledTeam.of(billing);
    await team.holds(
      'storage',
      [
        ['2025-03-10', 10],
        ['2025-03-11', 0],
      ],
      volume(7),
    );
    const { unpriced, volumes } = await team.storage(twoDays);
    expect(unpriced).toEqual([
      { resource_id: 'shared_storage:7', kind: 'shared_storage', sku: team.sku('storage'), unit_hours: 240 },
    ]);
    expect(volumes).toMatchObject([{ volume_id: '7', gb_hours: 240, total_cost: '0' }]);
  });
});
