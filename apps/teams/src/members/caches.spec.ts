import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { members, teams, users } from '@atoll/contracts/teams';
import { TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

/** Whoever holds a credential of a user must look again after each of these; `user` makes the user it is about. */
const changes: Record<
  string,
  (place: { team_id: string; user_id: string; owner: string; whole: string }) => Promise<unknown>
> = {
  'a role is changed': ({ team_id, user_id, owner }) =>
    fixture.call(owner, members.changeRole, { team_id, user_id, role: 'viewer' }),
  'a key is issued': ({ team_id, user_id, owner }) => fixture.call(owner, members.issueKey, { team_id, user_id }),
  'a key is revoked': ({ team_id, user_id, owner }) => fixture.call(owner, members.revokeKey, { team_id, user_id }),
  'a member is removed': ({ team_id, user_id, owner }) => fixture.call(owner, members.remove, { team_id, user_id }),
  'the team is deleted': ({ team_id, owner }) => fixture.call(owner, teams.delete, { team_id }),
  'a profile is changed': ({ whole }) => fixture.call(whole, users.updateProfile, { timezone: 'Asia/Tokyo' }),
  'a key of a whole user is issued': ({ whole }) => fixture.call(whole, users.issueKey, {}),
  'a key of a whole user is revoked': ({ whole }) => fixture.call(whole, users.revokeKey, {}),
};

it.each(Object.keys(changes))('caches of credentials are told when %s', async (name) => {
  const { team, keys, userIds } = await fixture.createTeam('team_owner', 'member');
  const [owner = ''] = keys;
  const user_id = userIds[1] ?? '';
  const whole = await fixture.wholeKeyOf(user_id);
  fixture.credentialsChanged.splice(0);
  await changes[name]?.({ team_id: team.id, user_id, owner, whole });
  expect(fixture.credentialsChanged).toContain(user_id);
});
