import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { maskApiKey } from '@atoll/api-keys';
import { type TeamRole } from '@atoll/contracts';
import { invitations, members, membershipChanged, teamBatches, teams } from '@atoll/contracts/teams';
import { contextOf, logIn, somebody } from '../sessions/session-fixture.js';
import { errorOf, operatorEmail, TeamsFixture, unknownId } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

/** A team with one owner, whose key is the first, and a member for each of the roles. */
async function teamOf(...roles: TeamRole[]) {
  const made = await fixture.createTeam('team_owner', ...roles);
  const [owner = '', ...keys] = made.keys;
  const [ownerId = '', ...userIds] = made.userIds;
  return { team_id: made.team.id, owner, ownerId, keys, userIds, emails: made.emails };
}

const newMember = (email: string, role: TeamRole = 'member') => ({ email, name: 'New', role });

describe('the members of a team', () => {
  it('are listed in the order in which they joined, pages counted from 0', async () => {
    const { team } = await fixture.createTeam('viewer', 'member', 'team_admin');
    const list = (page: number) => fixture.call(fixture.admin, members.list, { team_id: team.id, page, limit: 3 });
    const masked = team.members.map((member) => ({ ...member, api_key: maskApiKey(member.api_key ?? '') }));
    expect(await list(0)).toEqual({ data: masked.slice(0, 3), pagination: { page: 0, limit: 3, total: 4 } });
    expect(await list(1)).toEqual({ data: masked.slice(3), pagination: { page: 1, limit: 3, total: 4 } });
    expect(await list(2)).toEqual({ data: [], pagination: { page: 2, limit: 3, total: 4 } });
    expect((await errorOf(fixture.call(fixture.admin, members.list, { team_id: unknownId }))).code).toBe('not_found');
  });

  it('gain one, who is shown a key to this team once and whom others are told of', async () => {
    const { team_id, owner } = await teamOf();
    const added = await fixture.call(owner, members.add, { team_id, ...newMember('Grace@Example.com') }, 'add-grace');
    expect(added).toMatchObject({ email: 'grace@example.com', name: 'New', role: 'member', api_token: true });
    expect(await fixture.call(added.api_key ?? '', teams.get, { team_id })).toMatchObject({ id: team_id });
    const again = await fixture.call(owner, members.add, { team_id, ...newMember('Grace@Example.com') }, 'add-grace');
    const invitation = added.invitation && { ...added.invitation, url: null };
    expect(again).toEqual({ ...added, api_key: maskApiKey(added.api_key ?? ''), invitation });
    const told = await fixture.told(membershipChanged, team_id, (payloads) =>
      payloads.some(({ user_id }) => user_id === added.user_id),
    );
    expect(told.at(-1)).toEqual({
      team_id,
      user_id: added.user_id,
      role: 'member',
      is_invited: true,
      had_not_joined: true,
      revision: 2,
    });
    expect(fixture.credentialsChanged).toContain(added.user_id);
  });

  it('have the role that others are told of in this team, whatever it is in another', async () => {
    const [{ team_id, owner }, other] = [await teamOf(), await fixture.createTeam('viewer')];
    const person = { email: other.emails[0] ?? '', name: 'Grace', role: 'team_admin' as const };
    const { user_id } = await fixture.call(owner, members.add, { team_id, ...person });
    await fixture.call(owner, members.remove, { team_id, user_id });
    const told = await fixture.told(membershipChanged, team_id, (all) => all.some(({ role }) => role === null));
    expect(told.filter((change) => change.user_id === user_id).map(({ role }) => role)).toEqual(['team_admin', null]);
  });

  it('are no two of one address', async () => {
    const { team_id, owner, emails } = await teamOf('member');
    expect(
      (await errorOf(fixture.call(owner, members.add, { team_id, ...newMember(emails[1]?.toUpperCase() ?? '') }))).code,
    ).toBe('conflict');
  });

  it('lose one, whose keys to this team die with the membership and stay dead when they come back', async () => {
    const { team_id, owner, keys, userIds, emails } = await teamOf('member');
    const [key = ''] = keys;
    const [user_id = ''] = userIds;
    await fixture.call(owner, members.remove, { team_id, user_id });
    expect((await errorOf(fixture.verify(key))).code).toBe('unauthenticated');
    expect((await errorOf(fixture.call(owner, members.remove, { team_id, user_id }))).code).toBe('not_found');
    await fixture.told(membershipChanged, team_id, (payloads) =>
      payloads.some((told) => told.user_id === user_id && told.role === null),
    );
    await fixture.call(owner, members.add, { team_id, ...newMember(emails[1] ?? '') });
    expect((await errorOf(fixture.verify(key))).code).toBe('unauthenticated');
  });

  it('are at most 1000', async () => {
    const { team_id, owner } = await teamOf();
    await fixture.query(
      `WITH crowd AS (INSERT INTO "user" (id, email, name) SELECT gen_random_uuid(), n || '@crowd.example', 'x' FROM generate_series(1, 998) n RETURNING id)
       INSERT INTO membership (id, team_id, user_id, name, role) SELECT gen_random_uuid(), $1, id, 'x', 'viewer' FROM crowd`,
      [team_id],
    );
    await fixture.call(owner, members.add, { team_id, ...newMember('the-last@example.com') });
    const refused = await errorOf(
      fixture.call(owner, members.add, { team_id, ...newMember('one-too-many@example.com') }),
    );
    expect([refused.code, refused.message]).toEqual(['conflict', 'A team has at most 1000 members.']);
    expect(await fixture.query(`SELECT FROM "user" WHERE email = 'one-too-many@example.com'`)).toEqual([]);
  });

  it('may leave by themselves', async () => {
    const { team_id, owner, keys, userIds } = await teamOf('viewer');
    await fixture.call(keys[0] ?? '', members.remove, { team_id, user_id: userIds[0] ?? '' });
    expect((await fixture.call(owner, members.list, { team_id })).pagination.total).toBe(1);
  });
});

describe('the role of a member', () => {
  it('is changed, shown, told of, and holds for the next call', async () => {
    const { team_id, owner, keys, userIds } = await teamOf('viewer');
    const [user_id = ''] = userIds;
    const rename = () => fixture.call(keys[0] ?? '', teams.update, { team_id, name: 'By the viewer' });
    expect((await errorOf(rename())).code).toBe('forbidden');
    expect(await fixture.call(owner, members.changeRole, { team_id, user_id, role: 'team_admin' })).toMatchObject({
      user_id,
      role: 'team_admin',
    });
    expect(await rename()).toMatchObject({ name: 'By the viewer' });
    await fixture.told(membershipChanged, team_id, (payloads) =>
      payloads.some((told) => told.user_id === user_id && told.role === 'team_admin'),
    );
  });

  it('changed to what it is changes nothing', async () => {
    const { team_id, owner, ownerId } = await teamOf();
    const [before] = await fixture.query('SELECT revision FROM team WHERE id = $1', [team_id]);
    await fixture.call(owner, members.changeRole, { team_id, user_id: ownerId, role: 'team_owner' });
    expect(await fixture.query('SELECT revision FROM team WHERE id = $1', [team_id])).toEqual([before]);
  });

  it('changed to the one that a team_owner is shown with changes nothing, and to another one does', async () => {
    const { team_id, owner, ownerId, keys, userIds } = await teamOf('team_admin', 'team_owner');
    const save = (by: string, user_id: string, role: TeamRole) =>
      fixture.call(by, teamBatches.changeRole, { team_id, user_id, role });
    for (const by of [owner, keys[0] ?? ''])
      expect(await save(by, ownerId, 'team_admin')).toMatchObject({ role: 'team_owner' });
    expect(await save(owner, userIds[0] ?? '', 'team_admin')).toMatchObject({ role: 'team_admin' });
    expect((await errorOf(save(keys[0] ?? '', ownerId, 'viewer'))).code).toBe('forbidden');
    expect(await save(owner, userIds[1] ?? '', 'viewer')).toMatchObject({ role: 'viewer' });
    expect((await errorOf(save(owner, ownerId, 'viewer'))).code).toBe('conflict');
  });

  it('is not that of the last team_owner', async () => {
    const { team_id, owner, ownerId, userIds } = await teamOf('member');
    for (const key of [owner, fixture.admin]) {
      const demoted = fixture.call(key, members.changeRole, { team_id, user_id: ownerId, role: 'team_admin' });
      expect((await errorOf(demoted)).code).toBe('conflict');
      expect((await errorOf(fixture.call(key, members.remove, { team_id, user_id: ownerId }))).code).toBe('conflict');
    }
    await fixture.call(owner, members.changeRole, { team_id, user_id: userIds[0] ?? '', role: 'team_owner' });
    await fixture.call(owner, members.remove, { team_id, user_id: ownerId });
    expect((await fixture.call(fixture.admin, members.list, { team_id })).data.map(({ role }) => role)).toEqual([
      'team_owner',
    ]);
  });

  it('of the only team_owner, invited by the operator, is declined by the person and taken by nobody else', async () => {
    const person = await somebody(fixture);
    const people = [newMember(person.email, 'team_owner')];
    const made = await fixture.call(fixture.admin, teams.create, { name: 'Research', members: people });
    const path = { team_id: made.id, user_id: person.userId };
    for (const key of [made.members[0]?.api_key ?? '', fixture.admin])
      expect((await errorOf(fixture.call(key, members.remove, path))).code).toBe('conflict');
    await fixture.ask(members.remove, path, await contextOf(fixture, await logIn(fixture, person)));
    const list = async () => (await fixture.call(fixture.admin, members.list, { team_id: made.id })).data;
    expect(await list()).toEqual([]);
    expect(await fixture.call(fixture.admin, teams.get, { team_id: made.id })).toMatchObject({ members: [] });
    await fixture.call(fixture.admin, members.add, {
      team_id: made.id,
      ...newMember('heir@example.com', 'team_owner'),
    });
    expect(await list()).toMatchObject([{ email: 'heir@example.com', role: 'team_owner' }]);
  });

  it('of a team_owner is not in the hands of a team_admin, by no way', async () => {
    const { team_id, owner, ownerId, keys, userIds } = await teamOf('team_admin', 'team_admin');
    const [admin = ''] = keys;
    const [own = '', other = ''] = userIds;
    const { user_id: invitedId } = await fixture.call(owner, members.add, {
      team_id,
      ...newMember('invited-owner@example.com', 'team_owner'),
    });
    const { data } = await fixture.call(admin, invitations.list, { team_id });
    const invitation_id = data.find(({ user_id }) => user_id === invitedId)?.id ?? '';
    const attempts = [
      fixture.call(admin, members.changeRole, { team_id, user_id: own, role: 'team_owner' }),
      fixture.call(admin, members.changeRole, { team_id, user_id: other, role: 'team_owner' }),
      fixture.call(admin, members.changeRole, { team_id, user_id: ownerId, role: 'viewer' }),
      fixture.call(admin, members.add, { team_id, ...newMember('accomplice@example.com', 'team_owner') }),
      fixture.call(admin, members.remove, { team_id, user_id: ownerId }),
      fixture.call(admin, members.issueKey, { team_id, user_id: ownerId }),
      fixture.call(admin, members.revokeKey, { team_id, user_id: ownerId }),
      fixture.call(admin, invitations.resend, { team_id, invitation_id }),
      fixture.call(admin, invitations.revoke, { team_id, invitation_id }),
    ];
    for (const { code } of await Promise.all(attempts.map(errorOf))) expect(code).toBe('forbidden');
    expect((await fixture.call(owner, invitations.resend, { team_id, invitation_id })).url).toContain('#');
  });
});

describe("the operator's address among the members of a team", () => {
  it('yields a key that opens that team alone', async () => {
    const { team_id, owner } = await teamOf();
    const elsewhere = await fixture.createTeam('member');
    const { api_key } = await fixture.call(owner, members.add, { team_id, ...newMember(operatorEmail.toUpperCase()) });
    const key = api_key ?? '';
    expect(await fixture.verify(key)).toMatchObject({
      scope: 'membership',
      platform_admin: false,
      teams: [{ team_id, role: 'member' }],
    });
    expect((await errorOf(fixture.call(key, teams.get, { team_id: elsewhere.team.id }))).code).toBe('not_found');
    expect((await errorOf(fixture.call(key, teams.suspend, { team_id }))).code).toBe('forbidden');
    expect((await fixture.call(key, teams.list, {})).data.map(({ id }) => id)).toEqual([team_id]);
  });
});
