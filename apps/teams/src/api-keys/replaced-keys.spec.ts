import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { members, users } from '@atoll/contracts/teams';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { mostInGrace } from './api-key.service.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const rowsOf = async (userId: string, teamId: string | null): Promise<number> =>
  (
    await fixture.query('SELECT FROM api_key WHERE user_id = $1 AND team_id IS NOT DISTINCT FROM $2::uuid', [
      userId,
      teamId,
    ])
  ).length;

it('however often a member replaces their key, the key and the one before it are all that is stored', async () => {
  const { team, keys, userIds } = await fixture.createTeam('team_owner');
  let [key = ''] = keys;
  const place = { team_id: team.id, user_id: userIds[0] ?? '' };
  for (let count = 0; count < 4; count += 1) key = (await fixture.call(key, members.issueKey, place)).api_key ?? '';
  expect(await rowsOf(place.user_id, team.id)).toBe(2);
});

it('a key that is replaced removes those of its holder that ended, expired ones too, and none of another', async () => {
  const { team, keys, userIds } = await fixture.createTeam('team_owner', 'member');
  const [userId = '', other = ''] = userIds;
  const place = { team_id: team.id, user_id: userId };
  await fixture.wholeKeyOf(userId);
  const { api_key } = await fixture.call(keys[0] ?? '', members.issueKey, { ...place, grace_seconds: 3_600 });
  await fixture.query(
    `UPDATE api_key SET expiry_date = now() WHERE user_id = $1 OR user_id = $2 AND (team_id IS NULL OR replaced_at IS NOT NULL)`,
    [other, userId],
  );
  await fixture.call(api_key ?? '', members.issueKey, place);
  expect([await rowsOf(userId, team.id), await rowsOf(userId, null), await rowsOf(other, team.id)]).toEqual([2, 1, 1]);
});

it(`of a member ${mostInGrace} replaced keys work at once; without a grace all of them end`, async () => {
  const { team, keys, userIds } = await fixture.createTeam('team_owner');
  let [key = ''] = keys;
  const place = { team_id: team.id, user_id: userIds[0] ?? '' };
  const replace = async (grace_seconds: number) =>
    (key = (await fixture.call(key, members.issueKey, { ...place, grace_seconds })).api_key ?? '');
  for (let count = 0; count < mostInGrace; count += 1) await replace(3_600);
  expect(await errorOf(replace(3_600))).toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(/^20 replaced keys still work/),
  });
  await replace(0);
  await replace(3_600);
  expect(await rowsOf(place.user_id, team.id)).toBe(2);
});

it('the keys of the operator stay: one that was revoked is not accepted at the next start, and one that ended is in no grace', async () => {
  const [{ id: userId = '' } = {}] = await fixture.query<{ id: string }>('SELECT id FROM "user" WHERE platform_admin');
  const before = await rowsOf(userId, null);
  let key = fixture.admin;
  for (let count = 0; count < 3; count += 1) key = (await fixture.call(key, users.issueKey, {})).api_key;
  expect(await rowsOf(userId, null)).toBe(before + 3);
  await fixture.query(
    `INSERT INTO api_key SELECT ended.* FROM generate_series(1, $2) n, (SELECT * FROM api_key WHERE user_id = $1 AND team_id IS NULL LIMIT 1) k,
       jsonb_populate_record(k::api_key, jsonb_build_object('id', gen_random_uuid(), 'digest', '\\x' || md5(n::text),
         'replaced_at', now(), 'revoked_at', NULL, 'expiry_date', now())) ended`,
    [userId, mostInGrace],
  );
  // Of those no replaced key works.
  await fixture.call(key, users.issueKey, { grace_seconds: 60 });
});
