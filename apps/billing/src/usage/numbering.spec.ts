import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { usage, type UsageEvent } from '@atoll/contracts/billing';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { BillingFixture } from '../billing-fixture.js';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await BillingFixture.start();
});
afterAll(() => fixture.stop());

it('looks the numbers of a batch up one by one, however many pools and resources the team has', async () => {
  const team = await fixture.team('training');
  const [pools, facts] = [2_000, 100];
  const factOf = (at: number, resource: string): UsageEvent => ({
    source: 'meter',
    id: `${resource} ${at}`,
    time: '2026-10-01T00:00:00.000Z',
    resource_id: `${resource}:${at}`,
    kind: 'gpuaas_pool',
    sku: 'gpu.A100-80GB.1g.10gb',
    quantity: '1',
    team_id: team.team_id,
    workspace_id: team.workspaces[0]!.id,
    pool_id: String(at + 1),
  });
  const record = (resource: string, upTo = facts) =>
    fixture.call(usage.record, { events: Array.from({ length: upTo }, (_, at) => factOf(at, resource)) });
  await record('first', 1);
  await fixture.query(
    `INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
     SELECT team_no, workspace_id, kind, sku, region_id, 1000 + pool FROM series, generate_series(1, $1::int) pool`,
    [pools],
  );
  await fixture.query(
    `INSERT INTO timeline (team_no, resource_id, sku) SELECT team_no, 'other:' || at, sku FROM timeline, generate_series(1, $1::int) at`,
    [pools],
  );
  const sent = await allStatementsDuring(() => record('second'));
  const looks = sent.filter(({ text }) => /unnest[\s\S]*(?:series|timeline)/.test(text) && /told/.test(text));
  expect(looks.length).toBeGreaterThanOrEqual(3);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(pools);
});
