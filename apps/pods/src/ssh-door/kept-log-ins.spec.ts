import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { PodsFixture } from '../pods-fixture.js';
import { LogInTrail } from './doorkeeper.js';
import type { KeptLogIns } from './kept-log-ins.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start({ logInRetentionDays: 30 });
});
afterAll(() => fixture.stop());

it('log-ins are kept for as long as the setting says, and no longer, however many there are', async () => {
  const trail = fixture.get(LogInTrail) as KeptLogIns;
  await fixture.query(
    `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, address, began_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'old', gen_random_uuid(), gen_random_uuid(), '::1', clock_timestamp() - interval '31 days'
     FROM generate_series(1, 2500)`,
  );
  const [podId, teamId, userId] = [newId(), newId(), newId()];
  const admission = { podId, podName: 'kept', teamId, userId, sshKeyId: null, fingerprint: null, credential: null, run: null };
  const [open, lately] = [await trail.began(admission, '::1'), await trail.began(admission, '::1')];
  await fixture.query(`UPDATE ssh_log_in SET began_at = clock_timestamp() - interval '29 days' WHERE log_in_id = $1`, [lately]);
  await trail.forgetOld();
  const kept = await fixture.query<{ log_in_id: string }>('SELECT log_in_id FROM ssh_log_in');
  expect(kept.map(({ log_in_id }) => log_in_id).toSorted()).toEqual([open, lately].toSorted());
});
