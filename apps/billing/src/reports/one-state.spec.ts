import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { UsageKind } from '@atoll/contracts/billing';
import { teamUpdated } from '@atoll/contracts/teams';
import { beforeStatement, statementsOf } from '@atoll/testing';
import { BillingFixture } from '../billing-fixture.js';
import { BilledTeam } from './report-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const month = { from: '2025-03-01', to: '2025-04-01', interval: 'monthly' } as const;
const kinds: UsageKind[] = ['vm', 'gpuaas_pool', 'shared_storage'];

/** A team of which all that a report shows changes at once. */
class ChangingTeam {
  private revision = 1;

  private constructor(readonly billed: BilledTeam) {}

  static async of(): Promise<ChangingTeam> {
    const team = new ChangingTeam(await BilledTeam.of(billing));
    await team.change();
    return team;
  }

  /** What was held is of another SKU, at another price, in other hands by name, and more of it in the second month. */
  async change(): Promise<void> {
    const n = (this.revision += 1);
    const { billed } = this;
    for (const kind of kinds) {
      await billed.price(`${kind}-${n}`, `${n}`, '2025-01-01');
      const named = {
        kind,
        resource_id: `${kind}:1`,
        resource_name: `name ${n}`,
        sequence: n,
        ...(kind === 'gpuaas_pool' && { pool_id: `${n}` }),
        attributes: { profile: `${n}g`, pool_name: `pool ${n}`, used_size_in_gb: n },
      };
      const [start, end, next] = ['2025-03-10', '2025-03-11', '2025-04-10'];
      await billed.holds(
        `${kind}-${n - 1}`,
        [
          [start, 0],
          [next, 0],
        ],
        named,
      );
      await billed.holds(
        `${kind}-${n}`,
        [
          [start, 1],
          [end, 0],
          [next, n],
        ],
        named,
      );
    }
    const workspaces = [{ id: billed.workspace(), name: `workspace ${n}`, is_deleted: false }];
    await billing.tell(teamUpdated, { team_id: billed.id, revision: n, workspaces, is_complete: false });
  }
}

const withoutTime = ({ as_of: _, ...report }: { as_of: string }): object => report;

it.each<[string, (team: BilledTeam) => Promise<{ as_of: string }>]>([
  ['the bill of a team', (team) => team.report(month)],
  ['the bill of a workspace', (team) => team.ofWorkspace('default', month)],
  ['the bill by workspace', (team) => team.byWorkspace(month)],
  ['the bill of pools', (team) => team.pools(month)],
  ['the bill of storage', (team) => team.storage(month)],
  ['the bill of instances', (team) => team.instances(month)],
  ['the bill of the instances of a workspace', (team) => team.instancesOf('default', month)],
  ['the comparison of two months', (team) => team.compare('2025-03', '2025-04')],
])('law: %s shows one state, whichever of its statements a change is committed before', async (_, report) => {
  const team = await ChangingTeam.of();
  const read = async () => withoutTime(await report(team.billed));
  const { length } = await statementsOf(read);
  expect(length).toBeGreaterThan(1);
  for (let place = 0; place < length; place += 1) {
    const before = await read();
    const during = await beforeStatement(place, () => team.change(), read);
    const after = await read();
    expect(after).not.toEqual(before);
    expect([before, after]).toContainEqual(during);
  }
});

it('law: usage that is moved from one month to the next is in one of two months that are compared', async () => {
  const team = await BilledTeam.of(billing);
  await team.price('vm', '1', '2025-01-01');
  let moves = 0;
  const move = async () => {
    moves += 1;
    const inFirst = moves % 2;
    await team.holds(
      'vm',
      [
        ['2025-03-01', inFirst],
        ['2025-04-01', 1 - inFirst],
        ['2025-05-01', 0],
      ],
      { sequence: moves },
    );
  };
  await move();
  const costs = async () => {
    const { start_month, end_month } = await team.compare('2025-03', '2025-04');
    return [start_month.total_cost, end_month.total_cost];
  };
  const { length } = await statementsOf(costs);
  for (let place = 0; place < length; place += 1)
    expect([
      ['744', '0'],
      ['0', '720'],
    ]).toContainEqual(await beforeStatement(place, move, costs));
});
