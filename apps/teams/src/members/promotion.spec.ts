import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { invitations, links, members, teams, type TeamMember } from '@atoll/contracts/teams';
import { gateway, logIn, password, squat, tokenIn, verify } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

let team_id = '';
let owner = '';
let admin = '';
async function freshTeam(): Promise<void> {
  const made = await fixture.createTeam('team_owner', 'team_admin');
  team_id = made.team.id;
  [owner = '', admin = ''] = made.keys;
}

const add = (by: string, email: string): Promise<TeamMember> =>
  fixture.call(by, members.add, { team_id, email, name: 'Rising', role: 'member' });
const issue = async (by: string, user_id: string, grace_seconds = 0): Promise<string> =>
  (await fixture.call(by, members.issueKey, { team_id, user_id, grace_seconds })).api_key ?? '';
const promote = (user_id: string): Promise<TeamMember> =>
  fixture.call(owner, members.changeRole, { team_id, user_id, role: 'team_owner' });
const use = (url: string | null | undefined, secret = password) =>
  fixture.ask(links.use, { token: tokenIn(url ?? ''), password: secret }, gateway);
/** The invitation is sent once more; its link. */
async function resend(by: string, user_id: string): Promise<string | null> {
  const { data } = await fixture.call(owner, invitations.list, { team_id });
  const invitation_id = data.find((one) => one.user_id === user_id)?.id ?? '';
  return (await fixture.call(by, invitations.resend, { team_id, invitation_id })).url;
}
const rolesOf = async (key: string): Promise<string[]> => (await fixture.verify(key)).teams.map(({ role }) => role);

describe('a member who becomes team_owner', () => {
  it('loses a key that a team_admin saw when the member was added', async () => {
    await freshTeam();
    const { user_id, api_key } = await add(admin, 'added@example.com');
    expect(await promote(user_id)).toMatchObject({ role: 'team_owner', api_key: null, api_token: false });
    expect((await errorOf(fixture.verify(api_key ?? ''))).code).toBe('unauthenticated');
    expect(await rolesOf(await issue(owner, user_id))).toEqual(['team_owner']);
  });

  it('loses a key that a team_admin issued, in grace too, and any that was made with it', async () => {
    await freshTeam();
    const { user_id, api_key } = await add(owner, 'issued@example.com');
    const issued = await issue(admin, user_id, 3600);
    const madeWithIt = await issue(issued, user_id, 3600);
    await promote(user_id);
    for (const key of [issued, madeWithIt]) expect((await errorOf(fixture.verify(key))).code).toBe('unauthenticated');
    expect(await rolesOf(api_key ?? '')).toEqual(['team_owner']);
  });

  it('keeps a key that a team_owner or the operator issued', async () => {
    await freshTeam();
    for (const by of [owner, fixture.admin]) {
      const { user_id, api_key } = await add(by, `${by.slice(-6)}@example.com`);
      const issued = await issue(by, user_id, 3600);
      await promote(user_id);
      for (const key of [api_key ?? '', issued]) expect(await rolesOf(key)).toEqual(['team_owner']);
    }
    const made = await fixture.createTeam('viewer');
    await fixture.call(fixture.admin, members.changeRole, {
      team_id: made.team.id,
      user_id: made.userIds[0] ?? '',
      role: 'team_owner',
    });
    expect(await fixture.call(made.keys[0] ?? '', teams.delete, { team_id: made.team.id })).toEqual({ deleting: null });
  });

  it('is not let in by a link that a team_admin was shown, when the member was added or later', async () => {
    await freshTeam();
    const { user_id, invitation } = await add(admin, 'invited@example.com');
    await promote(user_id);
    expect((await errorOf(use(invitation?.url))).code).toBe('unauthenticated');
    const other = await add(owner, 'invited-again@example.com');
    const again = await resend(admin, other.user_id);
    await promote(other.user_id);
    for (const url of [again, other.invitation?.url]) expect((await errorOf(use(url))).code).toBe('unauthenticated');
    await use(await resend(owner, other.user_id));
  });

  it('is let in by a link that a team_owner or the operator was shown', async () => {
    await freshTeam();
    for (const by of [owner, fixture.admin]) {
      const { user_id, invitation } = await add(by, `invited-by-${by.slice(-6)}@example.com`);
      await promote(user_id);
      await use(invitation?.url);
      const resent = await add(admin, `resent-by-${by.slice(-6)}@example.com`);
      const url = await resend(by, resent.user_id);
      await promote(resent.user_id);
      await use(url);
    }
  });

  it('has no password that a team_admin may have set: promoted, or added anew, after the operator’s link alone', async () => {
    await freshTeam();
    const email = 'squatted@example.com';
    const { user_id, invitation } = await add(admin, email);
    await use(invitation?.url, 'of the team_admin');
    const theirs = await logIn(fixture, { email }, undefined, 'of the team_admin');
    const message =
      'A team_admin may know the password of this account: it was set by a link that one was shown, or before this was ' +
      'recorded. So it cannot become team_owner. Ask the operator for a one-time link, and set another password with it.';
    expect(await errorOf(promote(user_id))).toMatchObject({ code: 'conflict', message });
    await fixture.call(owner, members.remove, { team_id, user_id });
    const addOwner = () => fixture.call(owner, members.add, { team_id, email, name: 'Rising', role: 'team_owner' });
    expect(await errorOf(addOwner())).toMatchObject({ code: 'conflict', message });
    expect((await verify(fixture, theirs)).teams).toEqual([]);
    await use((await fixture.call(fixture.admin, links.create, { email })).url);
    expect((await errorOf(verify(fixture, theirs))).code).toBe('unauthenticated');
    expect(await addOwner()).toMatchObject({ user_id, role: 'team_owner' });
  });

  it('has one that was set by a link that a team_owner was shown', async () => {
    await freshTeam();
    const { user_id, invitation } = await add(owner, 'let-in@example.com');
    await use(invitation?.url, 'of the member');
    expect(await promote(user_id)).toMatchObject({ role: 'team_owner' });
  });

  it('has one that was set by a link of another team, which opens that team alone', async () => {
    await freshTeam();
    const user_id = await squat(fixture, 'squatted-elsewhere@example.com', password);
    await add(admin, 'squatted-elsewhere@example.com');
    expect(await promote(user_id)).toMatchObject({ role: 'team_owner' });
  });

  it('keeps their keys to other teams; who becomes anything else keeps all', async () => {
    await freshTeam();
    const elsewhere = await fixture.createTeam('member');
    const { user_id } = await add(admin, elsewhere.emails[0] ?? '');
    await promote(user_id);
    expect(await rolesOf(elsewhere.keys[0] ?? '')).toEqual(['member']);
    const other = await add(admin, 'other@example.com');
    await fixture.call(admin, members.changeRole, { team_id, user_id: other.user_id, role: 'team_admin' });
    expect(await rolesOf(other.api_key ?? '')).toEqual(['team_admin']);
  });
});
