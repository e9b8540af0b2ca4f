import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamChanged } from '@atoll/contracts/teams';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam, brief } from './report-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const aDay = { from: '2025-03-10', to: '2025-03-11' };

describe('a resource that moves to another workspace', () => {
  it('is billed to each for its time', async () => {
    const team = await BilledTeam.of(billing, 'training');
    await team.price('vm', '1', '2025-01-01');
    await team.holds('vm', [['2025-03-10', 1]]);
    await team.holds(
      'vm',
      [
        ['2025-03-10T18:00:00', 1],
        ['2025-03-11', 0],
      ],
      { workspace_id: team.workspace('training') },
    );
    const report = await team.byWorkspace(aDay);
    expect(
      report.workspaces.map(({ workspace_id, workspace_name, total_cost }) => [
        workspace_id,
        workspace_name,
        total_cost,
      ]),
    ).toEqual([
      [team.workspace(), 'default', '18'],
      [team.workspace('training'), 'training', '6'],
    ]);
    expect(report.total_cost).toBe('24');
    expect(report.intervals[0]).toMatchObject({ cost: '24', items: [{ unit_hours: 24, cost: '24' }] });
    expect(report.workspaces[1]?.intervals[0]).toMatchObject({ cost: '6', items: [{ unit_hours: 6, cost: '6' }] });
    const training = await team.ofWorkspace('training', aDay);
    expect(training.scope).toEqual({ team_id: team.id, workspace_id: team.workspace('training') });
    expect(brief(training)).toEqual([['2025-03-10T00:00:00Z', '6', 6]]);
  });
});

describe('a report by workspace', () => {
  it('has the workspaces that were used, by name, and each with its own items', async () => {
    const team = await BilledTeam.of(billing, 'zeta #2', 'zeta', 'alpha', 'idle');
    await team.price('vm', '1', '2025-01-01');
    await team.price('gb', '2', '2025-01-01');
    await team.holds(
      'vm',
      [
        ['2025-03-10', 1],
        ['2025-03-11', 0],
      ],
      { workspace_id: team.workspace('zeta') },
    );
    await team.holds(
      'gb',
      [
        ['2025-03-10', 1],
        ['2025-03-11', 0],
      ],
      { workspace_id: team.workspace('alpha'), kind: 'shared_storage' },
    );
    await team.holds(
      'vm',
      [
        ['2025-03-01', 1],
        ['2025-03-02', 0],
      ],
      { workspace_id: team.workspace('idle'), resource_id: 'vm:2' },
    );
    await team.holds(
      'vm',
      [
        ['2025-03-10T23:00:00', 1],
        ['2025-03-11', 0],
      ],
      { workspace_id: team.workspace('zeta #2'), resource_id: 'vm:3' },
    );
    const { workspaces, intervals } = await team.byWorkspace(aDay);
    expect(workspaces.map(({ workspace_name, total_cost }) => [workspace_name, total_cost])).toEqual([
      ['alpha', '48'],
      ['zeta', '24'],
      ['zeta #2', '1'],
    ]);
    const kinds = (buckets: typeof intervals) =>
      buckets.map(({ items }) => items.map(({ kind, sku, unit }) => [kind, sku, unit]));
    const [gb, vm] = [
      ['shared_storage', team.sku('gb'), 'unit'],
      ['vm', team.sku('vm'), 'unit'],
    ];
    expect([kinds(intervals), ...workspaces.map((workspace) => kinds(workspace.intervals))]).toEqual([
      [[gb, vm]],
      [[gb]],
      [[vm]],
      [[vm]],
    ]);
  });

  it('names a workspace that is gone as it was called', async () => {
    const team = await BilledTeam.of(billing, 'short-lived');
    await team.holds(
      'vm',
      [
        ['2025-03-10', 1],
        ['2025-03-11', 0],
      ],
      { workspace_id: team.workspace('short-lived') },
    );
    const kept = [{ id: team.workspace(), name: 'default' }];
    await billing.tell(teamChanged, {
      team_id: team.id,
      revision: 2,
      name: 'Research',
      is_suspended: false,
      status: 'active',
      workspaces: kept,
    });
    expect((await team.byWorkspace(aDay)).workspaces.map(({ workspace_name }) => workspace_name)).toEqual([
      'short-lived',
    ]);
    expect((await team.ofWorkspace('short-lived', aDay)).intervals[0]?.items).toHaveLength(1);
  });
});
