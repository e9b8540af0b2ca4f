import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { usage, type UsageEvent } from '@atoll/contracts/billing';
import { allStatementsDuring, endConnections, mostRowsRead } from '@atoll/testing';
import { BillingFixture, type ToldTeam } from '../billing-fixture.js';

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

it('after a failover that lost the numbers of a resource, its facts are not those of the resource that got them', async () => {
  const [ours, theirs] = [await fixture.team(), await fixture.team()];
  const factOf = (id: string, { team_id, workspaces }: ToldTeam): UsageEvent => ({
    source: 'meter',
    id,
    time: '2026-10-01T00:00:00.000Z',
    resource_id: `pod:${team_id}`,
    kind: 'pod',
    sku: 'gpu.A100-80GB.1g.10gb',
    quantity: '1',
    team_id,
    workspace_id: workspaces[0]!.id,
  });
  const record = (fact: UsageEvent) => fixture.call(usage.record, { events: [fact] });
  await record(factOf('theirs', theirs));
  for (const id of ['given', 'looked up']) await record(factOf(id, ours));
  // The new server has given both numbers to the other team.
  for (const table of ['usage_fact', 'segment', 'open_segment'])
    await fixture.query(`DELETE FROM ${table} WHERE timeline_no IN (SELECT no FROM timeline WHERE resource_id = $1)`, [
      `pod:${theirs.team_id}`,
    ]);
  await fixture.query('DELETE FROM timeline WHERE resource_id = $1', [`pod:${theirs.team_id}`]);
  const [numbers] = await fixture.query<{ of_ours: number; of_theirs: number }>(
    `SELECT (SELECT no FROM team WHERE id = $1) AS of_ours, (SELECT no FROM team WHERE id = $2) AS of_theirs`,
    [ours.team_id, theirs.team_id],
  );
  await fixture.query('DELETE FROM series WHERE team_no = $1', [numbers?.of_theirs]);
  await fixture.query('UPDATE timeline SET team_no = $2, resource_id = $3 WHERE team_no = $1', [
    numbers?.of_ours,
    numbers?.of_theirs,
    `pod:${theirs.team_id}`,
  ]);
  await fixture.query('UPDATE series SET team_no = $2 WHERE team_no = $1', [numbers?.of_ours, numbers?.of_theirs]);
  await endConnections((sql) => fixture.query(sql));
  await record(factOf('after', ours));
  const told = await fixture.query(
    `SELECT resource_id, timeline.team_no AS timeline, series.team_no AS series FROM usage_fact
       JOIN timeline ON timeline.no = timeline_no JOIN series ON series.no = series_no WHERE id = 'after'`,
  );
  expect(told).toEqual([{ resource_id: `pod:${ours.team_id}`, timeline: numbers?.of_ours, series: numbers?.of_ours }]);
});
