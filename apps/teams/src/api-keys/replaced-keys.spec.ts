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

it('the keys of the operator stay: one that was revoked is not accepted at the next start', async () => {
  const [{ id: userId = '' } = {}] = await fixture.query<{ id: string }>('SELECT id FROM "user" WHERE platform_admin');
  const before = await rowsOf(userId, null);
  let key = fixture.admin;
  for (let count = 0; count < 3; count += 1) key = (await fixture.call(key, users.issueKey, {})).api_key;
  expect(await rowsOf(userId, null)).toBe(before + 3);
});
