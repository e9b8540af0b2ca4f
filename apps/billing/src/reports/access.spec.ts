import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Operation, type UserCaller } from '@atoll/contracts';
import {
  billingReports,
  currencies,
  instanceReports,
  podUsageTold,
  priceDirectory,
  prices,
  usage,
} from '@atoll/contracts/billing';
import { teamChanged } from '@atoll/contracts/teams';
import { aTeam, describeAccess, statementsOf } from '@atoll/testing';
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
const months = { start_month: '2025-02', end_month: '2025-03' };
const fact = {
  source: 'x',
  id: 'x',
  time: '2025-01-01T00:00:00Z',
  resource_id: 'vm:x',
  kind: 'vm' as const,
  sku: 'x',
  quantity: '1',
};
const unknownId = '0199f3c2-0000-7000-8000-000000000000';

/** Each report, of a team and of its workspace. */
function reports(team_id: string, workspace_id: string, caller: Partial<UserCaller>): Promise<unknown>[] {
  const asked = { ...range, team_id };
  return [
    billing.call(billingReports.team, asked, caller),
    billing.call(billingReports.workspace, { ...range, workspace_id }, caller),
    billing.call(billingReports.byWorkspace, asked, caller),
    billing.call(billingReports.pools, { ...asked, region_id: 'all' }, caller),
    billing.call(billingReports.ratedPools, { ...asked, region_id: 'all' }, caller),
    billing.call(billingReports.storage, { ...asked, region_id: 'all' }, caller),
    billing.call(billingReports.comparison, { team_id, start_month: '2025-02', end_month: '2025-03' }, caller),
  ];
}
const refusals = async (calls: Promise<unknown>[]) => {
  const errors = await Promise.all(calls.map(errorOf));
  return [...new Set(errors.map(({ code, message }) => `${code}: ${message}`))];
};

describeAccess({
  service: 'billing',
  place: async () => {
    const billed = await BilledTeam.of(billing, 'training');
    const place = { team_id: billed.id, workspace_id: billed.workspace('training') };
    // Of the SKU, the pool and the region that all teams have; of the pool each has another profile.
    const { id } = billed;
    const steps = [['2025-03-10', 1]] as const;
    const used = { ...place, region_id: '1', sku: 'of-all' };
    await billed.holds('', steps, { ...used, resource_id: `vm:${id}` });
    await billed.holds('', steps, {
      ...used,
      sku: billed.sku('profile'),
      resource_id: `gpuaas_pool:${id}`,
      kind: 'gpuaas_pool',
      pool_id: '1',
    });
    await billed.holds('', steps, { ...used, resource_id: `shared_storage:${id}`, kind: 'shared_storage' });
    const price = { sku: 'of-all', unit: 'unit', unit_price: '1', valid_from: '2025-01-01T00:00:00Z', force: true };
    await billing.call(prices.create, { ...price, team_id: id });
    return place;
  },
  call: (operation: Operation, input, caller, idempotency) => billing.call(operation, input, caller, idempotency),
  kept: ['set a price', 'set a price of a team', 'tell usage'],
  query: (sql, values) => billing.query(sql, values),
  deleted: {
    begin: ({ team_id }) => billing.tell(teamChanged, { ...aTeam([]), team_id, revision: 3, status: 'deleted' }),
    keeps: [
      'read the bill',
      'read the bill of a workspace',
      'read the bill by workspace',
      'read the bill of pools',
      'read the bill of pools with its rates',
      'read the bill of storage',
      'compare months',
      'read the bill of instances',
      'read the bill of instances of a workspace',
    ],
  },
  subjects: () => billing.subjects,
  elsewhere: {},
  operations: {
    'read the bill': ['readBilling', billingReports.team, ({ team_id }) => ({ ...range, team_id })],
    'read the bill of a workspace': [
      'readBilling',
      billingReports.workspace,
      ({ workspace_id }) => ({ ...range, workspace_id }),
    ],
    'read the bill by workspace': ['readBilling', billingReports.byWorkspace, ({ team_id }) => ({ ...range, team_id })],
    'read the bill of pools': [
      'readBilling',
      billingReports.pools,
      ({ team_id }) => ({ ...range, team_id, region_id: 'all' }),
    ],
    'read the bill of pools with its rates': [
      'readBilling',
      billingReports.ratedPools,
      ({ team_id }) => ({ ...range, team_id, region_id: 'all' }),
    ],
    'read the bill of storage': [
      'readBilling',
      billingReports.storage,
      ({ team_id }) => ({ ...range, team_id, region_id: 'all' }),
    ],
    'compare months': ['readBilling', billingReports.comparison, ({ team_id }) => ({ team_id, ...months })],
    'read the bill of instances': ['readBilling', instanceReports.ofTeam, ({ team_id }) => ({ ...range, team_id })],
    'read the bill of instances of a workspace': [
      'readBilling',
      instanceReports.ofWorkspace,
      ({ workspace_id }) => ({ ...range, workspace_id }),
    ],
    'set a price': [
      'operate',
      prices.create,
      () => ({ sku: 'x', unit: 'vm', unit_price: '1', valid_from: '2025-01-01T00:00:00Z', force: true }),
    ],
    'set a price of a team': [
      'operate',
      prices.create,
      ({ team_id }) => ({
        team_id,
        sku: 'x',
        unit: 'vm',
        unit_price: '1',
        valid_from: '2025-01-01T00:00:00Z',
        force: true,
      }),
    ],
    'list prices': ['operate', prices.list, () => ({})],
    'read the time of reports': ['call', billingReports.now, () => ({})],
    'read the currency': ['call', currencies.read, () => ({})],
    'read prices in force': ['serve', priceDirectory.page, () => ({})],
    'tell usage': [
      'operate',
      usage.record,
      ({ team_id, workspace_id }) => ({ events: [{ ...fact, team_id, workspace_id }] }),
    ],
  },
});

describe('the reports of a team', () => {
  it('are not there for others, in the words for a team that is not there', async () => {
    const stranger = memberOf(unknownId);
    expect(await refusals(reports(team.id, team.workspace(), stranger))).toEqual([
      'not_found: No such team.',
      'not_found: No such workspace.',
    ]);
    const unknown = { ...range, team_id: '0199f3c2-0000-7000-8000-000000000001' };
    expect(await refusals([billing.call(billingReports.team, unknown, stranger)])).toEqual([
      'not_found: No such team.',
    ]);
  });

  it('are made of a team that only its owner knows, and hold no connection while it is asked', async () => {
    const [known, unknown] = [aTeam(), aTeam()];
    const ask = ({ team_id }: { team_id: string }) => billing.call(billingReports.team, { ...range, team_id });
    billing.owner.teams.push(known);
    expect(await ask(known)).toMatchObject({ scope: { team_id: known.team_id }, total_cost: '0' });
    const deleted = { ...aTeam(), status: 'deleted' as const };
    billing.owner.teams.push(deleted);
    expect(await ask(deleted)).toMatchObject({ scope: { team_id: deleted.team_id }, total_cost: '0' });
    billing.owner.leave();
    const sent = await statementsOf(async () => expect((await errorOf(ask(unknown))).code).toBe('unavailable'));
    billing.owner.comeBack();
    const words = sent.map(({ text }) => text.trim().split(/\s/, 1)[0]);
    expect(words).toEqual(['START', 'WITH', 'COMMIT', 'SELECT']);
  });

  it('are not there of a team of which usage alone was told, not even for the operator', async () => {
    const { team_id, workspaces } = aTeam();
    const [{ id: workspace_id = '' } = {}] = workspaces;
    await billing.tell(podUsageTold, { facts: [{ ...fact, id: team_id, team_id, workspace_id }] });
    expect(await errorOf(billing.call(billingReports.team, { ...range, team_id }))).toMatchObject({
      code: 'not_found',
      message: 'No such team.',
    });
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

  it('is refused where each resource is shown by itself, beyond 200,000 of them and not before', async () => {
    const large = await BilledTeam.of(billing);
    const day = [
      ['2024-06-01', 1],
      ['2024-06-02', 0],
    ] as const;
    for (let n = 0; n < 25; n += 1) await large.holds('vm', day, { resource_id: `vm:${n}` });
    const hourly = { team_id: large.id, start_date: '2024-01-01T00:00:00', interval: 'hourly' } as const;
    const ofInstances = (end_date: string) => billing.call(instanceReports.ofTeam, { ...hourly, end_date });
    // 8,000 hours, and one more.
    expect((await ofInstances('2024-11-29T08:00:00')).instances).toHaveLength(25);
    expect((await errorOf(ofInstances('2024-11-29T09:00:00'))).message).toContain('this makes 200025 cells');
    expect(
      (await large.report({ from: '2024-01-01', to: '2024-11-29T09:00:00', interval: 'hourly' })).intervals,
    ).toHaveLength(8_001);
  });
});
