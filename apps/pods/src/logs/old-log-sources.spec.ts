import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { LogsFixture } from './logs-fixture.js';
import { OldLogSources } from './old-log-sources.js';

/** More than one statement looks at. */
const podCount = 2_500;

let fixture: LogsFixture;
beforeAll(async () => {
  fixture = await LogsFixture.start({ logRetentionDays: 7 });
});
afterAll(() => fixture.stop());

/** Sources of deleted pods, whose last lines are 9 days old. */
async function write(): Promise<void> {
  await fixture.query(
    `WITH written AS (
       INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT lpad(number::text, 32, '0')::uuid, 'pod-' || number, 'pod', $1, $1, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1,
         'deleted', now()
       FROM generate_series(1, ${podCount}) number RETURNING pod_id, pod_name, team_id, gpuaas_id
     ), scope AS (INSERT INTO log_scope (team_id, gpuaas_id) SELECT team_id, gpuaas_id FROM written LIMIT 1 RETURNING no)
     INSERT INTO log_source (pod_id, pod_name, is_platform, scope_no, changed_at)
     SELECT pod_id, pod_name, false, scope.no, now() - interval '9 days' FROM written, scope ORDER BY pod_id`,
    [fixture.team()],
  );
}
const left = async () =>
  (await fixture.query<{ no: number }>('SELECT no FROM log_source ORDER BY no')).map(({ no }) => no);

it('sources of deleted pods are forgotten when their lines are too old, a slice at a time, and no others', async () => {
  await write();
  const sources = fixture.get(OldLogSources);
  const kept = (await left()).filter((_, at) => at % 3 === 0);
  const ofKept = 'FROM log_source source WHERE source.pod_id = pod.pod_id AND source.no = ANY ($1)';
  await fixture.query(
    `UPDATE log_source SET changed_at = now() - interval '7 days' WHERE no = ANY ($1) AND no / 3 % 3 = 0`,
    [kept],
  );
  await fixture.query(`UPDATE pod SET state = 'stopped' ${ofKept} AND source.no / 3 % 3 = 1`, [kept]);
  await fixture.query(
    `INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod.pod_id, 1, 1 FROM pod WHERE EXISTS (SELECT ${ofKept} AND no / 3 % 3 = 2)`,
    [kept],
  );
  let looks = 1;
  for (let before = podCount; await sources.removeSome(); looks += 1) {
    const after = (await left()).length;
    expect(before - after).toBeLessThanOrEqual(1_000);
    before = after;
  }
  expect([looks, await left()]).toEqual([4, kept]);

  // What has become old meanwhile goes with the next look.
  await fixture.query('DELETE FROM pod_run');
  await fixture.query(`UPDATE pod SET state = 'deleted'`);
  await fixture.query(`UPDATE log_source SET changed_at = now() - interval '9 days'`);
  while (await sources.removeSome());
  expect(await left()).toEqual([]);
});
