import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { invitations, members, teamBatches, teams, type Team, type TeamMember } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
/** Somebody with a key of their own as a whole, and the team that they created, with a team_admin whom they invited. */
let creator: string;
let whole: string;
let team: Team;
let invited: TeamMember;

beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  creator = (await fixture.createTeam('team_owner')).userIds[0] ?? '';
  whole = await fixture.wholeKeyOf(creator);
  team = await fixture.call(whole, teams.create, { name: 'Own', members: [person()] });
  [, invited] = team.members as [TeamMember, TeamMember];
});

const person = () => ({ email: `${newId()}@example.com`, name: 'x', role: 'team_admin' as const });
const holderOf = async ({ api_key }: { api_key?: string | null }) => (await fixture.verify(api_key ?? '')).held_by;
const invite = (key?: string | null, team_id = team.id) =>
  fixture.call(key ?? '', members.add, { team_id, ...person() });
const renew = (key: string | null | undefined, { user_id }: { user_id: string }, team_id = team.id) =>
  fixture.call(key ?? '', members.issueKey, { team_id, user_id });

it('whoever creates a team holds the keys of those invited to it; the key of their own membership is theirs', async () => {
  expect(await holderOf(invited)).toBe(creator);
  expect(await fixture.verify(team.members[0]?.api_key ?? '')).not.toHaveProperty('held_by');
});

it('whoever adds a member, or makes a new key for one, holds that key until the member makes one', async () => {
  expect(await holderOf(await invite(whole))).toBe(creator);
  const { members: added } = await fixture.call(whole, teamBatches.addMembers, {
    team_id: team.id,
    members: [person()],
  });
  expect(await holderOf(added[0] ?? {})).toBe(creator);
  expect(await holderOf(await renew(whole, invited))).toBe(creator);
  expect(await holderOf(await renew(await fixture.wholeKeyOf(invited.user_id), invited))).toBeUndefined();
});

it('a key that a held key makes, for its own member, for its holder or for others, is held by who holds that', async () => {
  const renewed = await renew(invited.api_key, invited);
  expect(await holderOf(renewed)).toBe(creator);
  const second = await invite(renewed.api_key);
  const third = await invite(second.api_key);
  expect([await holderOf(second), await holderOf(third)]).toEqual([creator, creator]);
  expect(await holderOf(await renew(third.api_key, second))).toBe(creator);
  await fixture.call(whole, members.changeRole, { team_id: team.id, user_id: third.user_id, role: 'team_owner' });
  const owners = await renew(whole, third);
  expect(await holderOf(await renew(owners.api_key, { user_id: creator }))).toBeUndefined();
});

it('a key is held no more once its user has accepted, and holds those that it makes itself then', async () => {
  const own = await fixture.wholeKeyOf(invited.user_id);
  await fixture.call(own, invitations.accept, { team_id: team.id });
  expect(fixture.credentialsChanged.at(-1)).toBe(invited.user_id);
  expect(await holderOf(invited)).toBeUndefined();
  expect(await holderOf(await invite(invited.api_key))).toBe(invited.user_id);
});

it('the operator holds no keys, also by a session without a second factor; a key of theirs that somebody holds gives no others', async () => {
  const [operator] = await fixture.query<{ id: string; email: string }>(
    'SELECT id, email FROM "user" WHERE platform_admin LIMIT 1',
  );
  const input = { name: 'Of others', members: [person()] };
  expect(await holderOf((await fixture.call(fixture.admin, teams.create, input)).members[1] ?? {})).toBeUndefined();
  const context = await fixture.contextOf(fixture.admin, teams.create, input);
  const caller = { ...(await fixture.callerOf(fixture.admin)), platformAdmin: false };
  expect(
    await holderOf((await fixture.ask(teams.create, input, { ...context, caller })).members[1] ?? {}),
  ).toBeUndefined();
  const theirs = await fixture.call(whole, members.add, {
    team_id: team.id,
    ...person(),
    email: operator?.email ?? '',
  });
  expect(await holderOf(await invite(theirs.api_key))).toBe(creator);
});

it('no answer to others says who holds a key, or was shown it', async () => {
  const seen = await fixture.call(whole, teams.get, { team_id: team.id });
  expect(JSON.stringify(seen)).not.toMatch(/held_by|shown_to/);
  const keys = await fixture.query<{ shown_to: string }>('SELECT shown_to FROM api_key WHERE user_id = $1', [
    invited.user_id,
  ]);
  expect(keys).toEqual([{ shown_to: creator }]);
});
