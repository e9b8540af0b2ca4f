import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { newId, Statements } from '@atoll/database';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { PodsFixture } from '../pods-fixture.js';
import { LogInTrail } from './admission-control.js';
import { KeptLogIns } from './kept-log-ins.js';
import { OldLogIns } from './old-log-ins.js';
import { PodsSettings } from '../pods-settings.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start({ logInRetentionDays: 30 });
});
afterAll(() => fixture.stop());

const [podId, teamId, userId] = [newId(), newId(), newId()];
const admission = {
  podId,
  podName: 'kept',
  teamId,
  userId,
  sshKeyId: null,
  fingerprint: null,
  credential: null,
  run: null,
};
const lost = 'the replica that held the connection was lost';

const rowOf = async (id: string) =>
  (
    await fixture.query<{ age: number | null; end_reason: string | null }>(
      `SELECT extract(epoch FROM clock_timestamp() - ended_at)::int AS age, end_reason FROM ssh_log_in WHERE log_in_id = $1`,
      [id],
    )
  )[0];
/** Nothing was heard of these for so long. */
const silence = (minutes: number) =>
  fixture.query(
    `UPDATE ssh_log_in SET began_at = began_at - make_interval(mins => $1), seen_at = seen_at - make_interval(mins => $1) WHERE ended_at IS NULL`,
    [minutes],
  );

it('the end of a log-in that cannot be written is written later, with the time that it had', async () => {
  const trail = fixture.get(LogInTrail) as KeptLogIns;
  const id = await trail.began(admission, '::1');
  const away = jest.spyOn(fixture.get(Statements), 'query').mockRejectedValue(new Error('the database is away'));
  const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 60_000);
  await trail.ended(id, 'the client left');
  clock.mockRestore();
  away.mockRestore();
  expect((await rowOf(id))?.end_reason).toBeNull();
  await trail.keepUp();
  const row = await rowOf(id);
  expect(row?.end_reason).toBe('the client left');
  expect(row?.age).toBeGreaterThanOrEqual(60);
});

it('what a replica that was killed had open is closed by another, which leaves open what living ones have', async () => {
  const replica = () => new KeptLogIns(fixture.get(Statements), fixture.get(PodsSettings));
  const [killed, living, watching] = [replica(), replica(), replica()];
  const ids = [await killed.began(admission, '::1'), await living.began(admission, '::1')] as const;
  await killed.keepUp();
  await silence(10);
  await living.keepUp();
  await watching.keepUp();
  expect([(await rowOf(ids[0]))?.end_reason, (await rowOf(ids[1]))?.end_reason]).toEqual([lost, null]);
  expect((await rowOf(ids[0]))?.age).toBeGreaterThanOrEqual(600);
  // One that was only frozen has its log-ins open again, and ends them itself.
  await killed.keepUp();
  expect((await rowOf(ids[0]))?.end_reason).toBeNull();
  await killed.ended(ids[0], 'the client left');
  await Promise.all([killed.keepUp(), living.ended(ids[1], 'the client left')]);
  expect([(await rowOf(ids[0]))?.end_reason, (await rowOf(ids[1]))?.end_reason]).toEqual([
    'the client left',
    'the client left',
  ]);
});

it('log-ins are kept for as long as the setting says, and no longer, however many there are', async () => {
  await fixture.query('DELETE FROM ssh_log_in');
  const trail = fixture.get(LogInTrail) as KeptLogIns;
  await fixture.query(
    `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, address, began_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'old', gen_random_uuid(), gen_random_uuid(), '::1', clock_timestamp() - interval '31 days'
     FROM generate_series(1, 2500)`,
  );
  const [open, lately] = [await trail.began(admission, '::1'), await trail.began(admission, '::1')];
  await fixture.query(`UPDATE ssh_log_in SET began_at = clock_timestamp() - interval '29 days' WHERE log_in_id = $1`, [
    lately,
  ]);
  while (await fixture.get(OldLogIns).removeSome());
  const kept = await fixture.query<{ log_in_id: string }>('SELECT log_in_id FROM ssh_log_in');
  expect(kept.map(({ log_in_id }) => log_in_id).toSorted()).toEqual([open, lately].toSorted());
});

it('log-ins that are kept are not read by each look for old ones', async () => {
  await fixture.query(
    `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, address, began_at, ended_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'kept', gen_random_uuid(), gen_random_uuid(), '::1', clock_timestamp(), clock_timestamp()
     FROM generate_series(1, 10000)`,
  );
  await fixture.query('ANALYZE ssh_log_in');
  const sent = await allStatementsDuring(() => fixture.get(OldLogIns).removeSome());
  const looks = sent.filter(({ text }) => text.startsWith('DELETE FROM ssh_log_in'));
  expect(looks).toHaveLength(1);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
});

it('log-ins that began lately are not read by each look for lost ones', async () => {
  await fixture.query(
    `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, address)
     SELECT gen_random_uuid(), gen_random_uuid(), 'open', gen_random_uuid(), gen_random_uuid(), '::1' FROM generate_series(1, 5000)`,
  );
  await fixture.query('VACUUM ANALYZE ssh_log_in');
  const sent = await allStatementsDuring(() =>
    new KeptLogIns(fixture.get(Statements), fixture.get(PodsSettings)).keepUp(),
  );
  const looks = sent.filter(({ text }) => text.includes('COALESCE(seen_at'));
  expect(looks).toHaveLength(1);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
});
