import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { instanceReports, podUsageTold, type InstancesReport } from '@atoll/contracts/billing';
import { BillingFixture, errorOf, memberOf } from '../billing-fixture.js';
import { BilledTeam } from './report-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const october = { start_date: '2025-10-01T00:00:00', end_date: '2025-11-01T00:00:00', interval: 'monthly' } as const;
const read = (team: BilledTeam): Promise<InstancesReport> =>
  billing.call(instanceReports.ofTeam, { team_id: team.id, ...october }, { platformAdmin: true });
const brief = ({ instances }: InstancesReport) =>
  instances.map(({ instance_id, kind, name, workspace_name, unit_hours, total_cost }) => [
    kind,
    instance_id,
    name,
    workspace_name,
    unit_hours,
    total_cost,
  ]);

describe('what instances used', () => {
  it('is of pods, VMs and bare-metal hosts alone, each with its latest name, priced or not', async () => {
    const team = await BilledTeam.of(billing, 'lab');
    const lab = team.workspace('lab');
    await team.price('vm', '2', '2025-01-01');
    await team.price('gpu', '5', '2025-01-01');
    await team.holds(
      'vm',
      [
        ['2025-10-02', 1],
        ['2025-10-03', 0],
      ],
      { resource_id: 'vm:a b', resource_name: 'old' },
    );
    await team.holds('vm', [['2025-10-03T00:00:00', 0]], {
      resource_id: 'vm:a b',
      resource_name: 'new',
      source: 'later',
    });
    await team.holds('pod', [['2025-10-31', 1]], {
      resource_id: 'pod:p',
      kind: 'pod',
      workspace_id: lab,
      resource_name: 'trainer',
    });
    await team.holds('metal', [['2025-10-31T12:00:00', 1]], { resource_id: 'baremetal:m', kind: 'baremetal' });
    await team.holds('gpu', [['2025-10-01', 4]], { resource_id: 'gpuaas_pool:1', kind: 'gpuaas_pool', pool_id: '1' });
    await team.holds('gb', [['2025-10-01', 4]], { resource_id: 'shared_storage:1', kind: 'shared_storage' });
    const report = await read(team);
    expect(brief(report).sort()).toEqual([
      ['baremetal', 'm', null, 'default', 12, '0'],
      ['pod', 'p', 'trainer', 'lab', 24, '0'],
      ['vm', 'a b', 'new', 'default', 24, '48'],
    ]);
    expect(report.total_cost).toBe('48');
    expect(report.unpriced.map(({ resource_id }) => resource_id)).toEqual(['baremetal:m']);
  });

  it('is shown by the name that it was given while it runs, and costs the same to the last digit', async () => {
    const team = await BilledTeam.of(billing);
    await team.price('vm', '0.333333333', '2025-01-01');
    const tell = (facts: [id: string, sequence: number, time: string, quantity: string, name: string][]) =>
      billing.tell(podUsageTold, {
        facts: facts.map(([id, sequence, time, quantity, resource_name]) => ({
          id: `${team.id}:${id}`,
          sequence,
          time,
          quantity,
          resource_name,
          resource_id: 'vm:renamed',
          kind: 'vm' as const,
          sku: team.sku('vm'),
          team_id: team.id,
          workspace_id: team.workspace(),
        })),
      });
    const shown = async () => {
      const { as_of: _asOf, instances, ...report } = await read(team);
      return {
        names: instances.map(({ name }) => name),
        costs: [report, instances.map((one) => ({ ...one, name: '' }))],
      };
    };
    const startedAt = '2025-10-31T10:11:12.345Z';
    await tell([['5', 5, startedAt, '1', 'old']]);
    const before = await shown();
    // As pods tells of a VM that was renamed twice: at the instant from which it is billed, behind that fact.
    await tell([['5.0000000010', 5, startedAt, '1', 'new']]);
    await tell([['5.0000000009', 5, startedAt, '1', 'middle']]);
    expect(await shown()).toEqual({ names: ['new'], costs: before.costs });
    // What has ended in between, and was seen later, still ends then.
    await tell([['6', 6, '2025-10-31T12:00:00.000Z', '0', 'new']]);
    const { names, costs } = await shown();
    expect(names).toEqual(['new']);
    expect(costs[0]).toMatchObject({ total_cost: '0.604412499' });
  });

  it('is in no report that begins when it ends, or ends when it begins', async () => {
    const team = await BilledTeam.of(billing);
    const holds = (resource_id: string, from: string, to: string) =>
      team.holds(
        'vm',
        [
          [from, 1],
          [to, 0],
        ],
        { resource_id },
      );
    await holds('vm:before', '2025-10-02', '2025-10-10');
    await holds('vm:begins', '2025-10-02', '2025-10-10T00:00:00.001');
    await holds('vm:ends', '2025-10-19T23:59:59.999', '2025-10-25');
    await holds('vm:after', '2025-10-20', '2025-10-25');
    const range = { start_date: '2025-10-10T00:00:00', end_date: '2025-10-20T00:00:00', interval: 'daily' } as const;
    const { instances } = await billing.call(
      instanceReports.ofTeam,
      { team_id: team.id, ...range },
      { platformAdmin: true },
    );
    expect(instances.map(({ instance_id }) => instance_id).sort()).toEqual(['begins', 'ends']);
  });

  it('is apart for each workspace that one was in', async () => {
    const team = await BilledTeam.of(billing, 'lab');
    await team.price('vm', '1', '2025-01-01');
    await team.holds('vm', [['2025-10-01', 1]]);
    await team.holds('vm', [['2025-10-11', 1]], { workspace_id: team.workspace('lab') });
    expect(
      brief(await read(team))
        .map(([, id, , workspace, hours]) => [id, workspace, hours])
        .sort(),
    ).toEqual([
      ['1', 'default', 240],
      ['1', 'lab', 504],
    ]);
    const lab = await billing.call(
      instanceReports.ofWorkspace,
      { workspace_id: team.workspace('lab'), ...october },
      { platformAdmin: true },
    );
    expect(brief(lab)).toEqual([['vm', '1', null, 'lab', 504, '504']]);
  });

  it('is for those who read bills, and not found by another team', async () => {
    const [ours, theirs] = [await BilledTeam.of(billing), await BilledTeam.of(billing)];
    const codeOf = async (work: Promise<unknown>) => (await errorOf(work)).code;
    const ofTeam = { team_id: theirs.id, ...october };
    const ofWorkspace = { workspace_id: theirs.workspace(), ...october };
    expect(await codeOf(billing.call(instanceReports.ofTeam, ofTeam, memberOf(ours.id, 'team_owner')))).toBe(
      'not_found',
    );
    expect(await codeOf(billing.call(instanceReports.ofWorkspace, ofWorkspace, memberOf(ours.id, 'team_owner')))).toBe(
      'not_found',
    );
    expect(await codeOf(billing.call(instanceReports.ofTeam, ofTeam, memberOf(theirs.id, 'viewer')))).toBe('forbidden');
    expect(await codeOf(billing.call(instanceReports.ofWorkspace, ofWorkspace, memberOf(theirs.id, 'member')))).toBe(
      'forbidden',
    );
  });
});
