import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { teamRoles, type TeamRole, type UserCaller } from '@atoll/contracts';
import { billingReports } from '@atoll/contracts/billing';
import { BillingFixture, errorOf, memberOf } from '../billing-fixture.js';
import { BilledTeam } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
  team = await BilledTeam.of(billing, 'training');
});
afterAll(() => billing.stop());

const range = { start_date: '2025-03-10T00:00:00', end_date: '2025-03-11T00:00:00', interval: 'daily' as const };
const unknownId = '0199f3c2-0000-7000-8000-000000000000';

/** Each report, of a team and of its workspace. */
function reports(team_id: string, workspace_id: string, caller: Partial<UserCaller>): Promise<unknown>[] {
  const asked = { ...range, team_id };
  return [
    billing.call(billingReports.team, asked, caller),
    billing.call(billingReports.workspace, { ...range, workspace_id }, caller),
    billing.call(billingReports.byWorkspace, asked, caller),
    billing.call(billingReports.pools, { ...asked, region_id: 'all' }, caller),
    billing.call(billingReports.storage, { ...asked, region_id: 'all' }, caller),
    billing.call(billingReports.comparison, { team_id, start_month: '2025-02', end_month: '2025-03' }, caller),
  ];
}
const refusals = async (calls: Promise<unknown>[]) => {
  const errors = await Promise.all(calls.map(errorOf));
  return [...new Set(errors.map(({ code, message }) => `${code}: ${message}`))];
};

describe('the reports of a team', () => {
  it.each(teamRoles)('are for owners, admins and billing viewers: %s', async (role: TeamRole) => {
    const calls = reports(team.id, team.workspace('training'), memberOf(team.id, role));
    if (['team_owner', 'team_admin', 'billing_viewer'].includes(role)) expect(await Promise.all(calls)).toHaveLength(6);
    else expect(await refusals(calls)).toEqual([expect.stringMatching(/^forbidden: /)]);
  });

  it('are not there for others, in the words for a team that is not there', async () => {
    const stranger = memberOf(unknownId);
    expect(await refusals(reports(team.id, team.workspace(), stranger))).toEqual([
      'not_found: No such team.',
      'not_found: No such workspace.',
    ]);
    const unknown = { ...range, team_id: '0199f3c2-0000-7000-8000-000000000001' };
    expect(await refusals([billing.call(billingReports.team, unknown, stranger)])).toEqual(['not_found: No such team.']);
  });

  it('are refused for their range before anything is said of the team', async () => {
    const backwards = { ...range, end_date: '2025-03-09T00:00:00', team_id: unknownId };
    const stranger = memberOf(team.id);
    const calls = [
      billing.call(billingReports.team, backwards, stranger),
      billing.call(billingReports.pools, { ...backwards, region_id: '987654' }, stranger),
    ];
    expect(await refusals(calls)).toEqual([expect.stringMatching(/^invalid_input: end_date /)]);
  });

  it('are of a region that was heard of', async () => {
    const asked = { ...range, team_id: team.id, region_id: '987654' };
    const calls = [billing.call(billingReports.pools, asked), billing.call(billingReports.storage, asked)];
    expect(await refusals(calls)).toEqual(['not_found: No such region.']);
  });
});

describe('a report of too many cells', () => {
  it('is refused, with the segment to change and the limit', async () => {
    const large = await BilledTeam.of(billing);
    for (let n = 0; n < 24; n += 1)
      await large.holds(`vm-${n}`, [
        ['2024-06-01', 1],
        ['2024-06-02', 0],
      ]);
    const year = { from: '2024-01-01', to: '2025-01-01', interval: 'hourly' as const };
    const { code, message, details } = await errorOf(large.report(year));
    expect([code, details.errors?.map(({ path }) => path)]).toEqual(['invalid_input', ['interval']]);
    expect(message).toContain('200000');
    expect((await large.report({ ...year, interval: 'daily' })).intervals).toHaveLength(366);
  });
});
