import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { instances, podBatches, pods } from '@atoll/contracts/pods';
import { mostRowsRead, statementsOf } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

/** More than PostgreSQL would read all of rather than use an index. Half of the pods are of one team among many. */
const ended = 2_000;

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** Rows that the plan reads from tables, and not from an index alone; beside what it counts. */
function rowsFetched(node: PlanNode, isOfPage: boolean): number {
  const isIn = isOfPage || node['Node Type'] === 'WindowAgg';
  const isFetch = isIn && /^(Seq|Index|Bitmap Heap) Scan$/.test(node['Node Type']);
  const own = isFetch ? node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) : 0;
  return (node.Plans ?? []).reduce((sum, each) => sum + rowsFetched(each, isIn), own);
}

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 10);
  const gone = await fixture.create(team);
  await fixture.call(pods.delete, { pod_name: gone.pod_name }, team.member);
  await fixture.untilDeleted(gone);
  await fixture.query(
    `INSERT INTO pod SELECT copy.* FROM pod CROSS JOIN generate_series(1, $2::integer) n CROSS JOIN LATERAL jsonb_populate_record(pod,
       jsonb_build_object('pod_id', gen_random_uuid(), 'pod_name', 'gone-' || n, 'created_at', pod.created_at - n * interval '1 minute',
       'team_id', CASE WHEN n % 2 = 0 THEN pod.team_id ELSE gen_random_uuid() END)) copy WHERE pod.pod_id = $1`,
    [gone.pod_id, ended],
  );
  await fixture.query(
    `INSERT INTO baremetal_instance (instance_id, revision, team_id, workspace_id, name, status, created_at)
     SELECT gen_random_uuid(), 1, $1, $2, 'metal', 'Released', now() - n * interval '1 minute' FROM generate_series(1, $3) n`,
    [team.team_id, team.workspace_id, ended],
  );
  for (const table of ['pod', 'baremetal_instance']) await fixture.query(`VACUUM (ANALYZE) ${table}`);
});
afterAll(() => fixture.stop());

it('instances that have ended are not read by listings of those that have not', async () => {
  const list = (more: object) => () => fixture.call(instances.list, { team_id: team.team_id, ...more }, team.member);
  const page = { team_id: team.team_id, page: 0, limit: 10 };
  const overview = () => fixture.call(podBatches.instances, page, team.member);
  for (const work of [list({}), list({ limit: 10 }), () => fixture.call(instances.list, {}), overview]) {
    const looks = (await statementsOf(work)).filter(({ text }) => text.includes('baremetal_instance'));
    expect(looks).not.toEqual([]);
    for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
  }
});

it('a slice of a whole listing is read by keys alone, so that no index of all that the team ever had is', async () => {
  const list = () => fixture.call(instances.list, { team_id: team.team_id, include_ended: 'true' }, team.member);
  const slices = (await statementsOf(list)).filter(({ text }) => /ANY \(\$\d::uuid\[\]\) ORDER BY/.test(text));
  expect(slices).toHaveLength(Math.ceil((1.5 * ended + 1) / 100));
  const [{ text, values } = { text: '', values: [] as unknown[] }] = slices;
  const plan = JSON.stringify(await fixture.query(`EXPLAIN (FORMAT JSON) ${text}`, values));
  expect(plan).toContain('"Index Name":"pod_pkey"');
  expect(plan).not.toContain('team_id =');
});

it('no table is searched for a subscription that does not exist', async () => {
  const { team_id, member } = await fixture.team();
  const list = () => errorOf(fixture.call(pods.list, { team_id, subscription_id: '999999999' }, member));
  const looks = (await statementsOf(list)).filter(({ text }) => /FROM pod\b/.test(text));
  expect(looks).toHaveLength(1);
  const plan = await fixture.get(DataSource).transaction(async (manager) => {
    await manager.query('SET LOCAL plan_cache_mode = force_generic_plan');
    await manager.query(`PREPARE look AS ${looks[0]?.text}`);
    const lines = await manager.query<object[]>(`EXPLAIN EXECUTE look (999999999, '${team_id}')`);
    await manager.query('DEALLOCATE look');
    return JSON.stringify(lines);
  });
  expect(plan).toContain('Index Scan');
  expect(plan).not.toContain('Seq Scan');
});

it.each(['instances', 'pods'])('a page of all %s of a team reads the rows of the page alone', async (what) => {
  const asked = { team_id: team.team_id, include_ended: 'true', limit: 10, page: 90 } as const;
  const list = () =>
    what === 'pods' ? fixture.call(pods.list, asked, team.member) : fixture.call(instances.list, asked, team.member);
  const sent = (await statementsOf(list)).filter(({ text }) => /created_at/.test(text));
  expect(sent).not.toEqual([]);
  let fetched = 0;
  for (const { text, values } of sent) {
    const [row] = await fixture.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
      values,
    );
    fetched += rowsFetched(row!['QUERY PLAN'][0]!.Plan, !text.includes('page_total'));
  }
  expect([fetched >= 10, fetched <= 100]).toEqual([true, true]);
});
