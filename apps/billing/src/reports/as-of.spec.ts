import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { billingReports } from '@atoll/contracts/billing';
import { BillingFixture, errorOf } from '../billing-fixture.js';
import { nanoOf } from '../money/amounts.js';
import { BilledTeam, type Asked } from './report-fixture.js';

let billing: BillingFixture;
let team: BilledTeam;
beforeAll(async () => {
  billing = await BillingFixture.start();
  team = await BilledTeam.of(billing);
  await team.price('x', '1', '2025-01-01');
  for (const kind of ['vm', 'gpuaas_pool', 'shared_storage'] as const)
    await team.holds('x', [['2025-03-10', 1]], {
      kind,
      resource_id: `${kind}:1`,
      ...(kind === 'gpuaas_pool' && { pool_id: '1' }),
    });
});
afterAll(() => billing.stop());

const now = async () => (await billing.call(billingReports.now, {})).as_of;
const aDay = { from: '2025-03-10', to: '2025-03-11' };
/** That of the team, and what it consists of. */
const reports = {
  team: (asked: Asked) => team.report(asked),
  workspace: (asked: Asked) => team.ofWorkspace('default', asked),
  byWorkspace: (asked: Asked) => team.byWorkspace(asked),
  pools: (asked: Asked) => team.pools(asked),
  ratedPools: (asked: Asked) => team.ratedPools(asked),
  storage: (asked: Asked) => team.storage(asked),
  instances: (asked: Asked) => team.instances(asked),
  instancesOfWorkspace: (asked: Asked) => team.instancesOf('default', asked),
};
const ofAllKinds = new Set(['team', 'workspace', 'byWorkspace']);

it.each(Object.entries(reports))(
  'the report %s counts usage that still runs up to the instant asked for',
  async (name, ask) => {
    const asOf = '2025-03-10T12:00:00.000Z';
    const { total_cost, as_of, intervals } = await ask({ ...aDay, asOf });
    const total = ofAllKinds.has(name) ? '36' : '12';
    expect([as_of, total_cost, intervals[0]?.partial]).toEqual([asOf, total, true]);
  },
);

it('reports up to one present add up to the bill, however much later each of them is made', async () => {
  const running = { from: '2025-03-10', to: '2035-01-01', interval: 'monthly', asOf: await now() } as const;
  const whole = nanoOf((await team.report(running)).total_cost);
  const parts = [await team.instances(running), await team.pools(running), await team.storage(running)];
  const sum = parts.reduce((all, { total_cost }) => all + nanoOf(total_cost), 0n);
  expect(whole).toBeGreaterThan(0n);
  // A millisecond of one unit costs 278 × 10^-9; each total is rounded at the last of nine decimals.
  expect([-2n, -1n, 0n, 1n, 2n]).toContain(whole - sum);
});

it('an instant in the future is refused', async () => {
  const asOf = new Date(Date.parse(await now()) + 3_600_000).toISOString();
  for (const ask of Object.values(reports))
    expect(await errorOf(ask({ ...aDay, asOf }))).toMatchObject({
      code: 'invalid_input',
      message: 'as_of must not be in the future.',
    });
});
