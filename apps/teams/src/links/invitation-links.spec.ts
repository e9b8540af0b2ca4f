import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  invitations,
  links,
  members,
  membershipChanged,
  secondFactors,
  sessions,
  teams,
  users,
  type MembershipChanged,
  type TeamMember,
} from '@atoll/contracts/teams';
import { Secret, TOTP } from 'otpauth';
import { contextOf, gateway, logIn, password, somebody, tokenIn, type Person } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, unknownId, type MadeTeam } from '../teams-fixture.js';

let fixture: TeamsFixture;
let own: MadeTeam;
let owner: string;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  own = await fixture.createTeam('team_owner');
  owner = own.keys[0] ?? '';
});
afterAll(() => fixture.stop());

const use = (url: string | null | undefined, secret = password, name?: string) =>
  fixture.ask(links.use, { token: tokenIn(url ?? ''), password: secret, ...(name !== undefined && { name }) }, gateway);

const invite = (email: string, made = own): Promise<TeamMember> =>
  fixture.call(made.keys[0] ?? '', members.add, { team_id: made.team.id, email, name: 'As sent', role: 'member' });

const fresh = (): string => `${randomUUID()}@example.com`;
const memberIn = async (email: string, made = own) =>
  (await fixture.call(fixture.admin, teams.get, { team_id: made.team.id })).members.find(
    (member) => member.email === email,
  );

/** What the other services are told of a member, event by event. */
const changesOf = async (userId: string, count: number): Promise<MembershipChanged[]> => {
  const ofMember = (told: MembershipChanged[]) => told.filter(({ user_id }) => user_id === userId);
  return ofMember(await fixture.told(membershipChanged, own.team.id, (all) => ofMember(all).length === count));
};

/** Of these, whether they are only invited. */
const toldOf = async (userId: string, count: number) =>
  (await changesOf(userId, count)).map(({ is_invited = false }) => is_invited);

describe('an invitation whose link is shown to whoever invites', () => {
  it('makes an account that acts in that team alone, until the operator says that the address is its own', async () => {
    const email = fresh();
    const { invitation, user_id } = await invite(email);
    expect(await use(invitation?.url, password, 'Ada')).toEqual({ email });
    expect(await memberIn(email)).toMatchObject({ status: 'active', name: 'Ada' });
    expect(await toldOf(user_id, 2)).toEqual([true, false]);
    const other = await fixture.createTeam('team_owner');
    await invite(email, other);
    const session = await logIn(fixture, { email });
    expect(session.user.teams.map(({ id }) => id)).toEqual([own.team.id]);
    expect(session.user.second_factor).toEqual({ is_set: false, recovery_codes: 0, passkeys: 0 });
    const context = await contextOf(fixture, session);
    expect(context.caller).toMatchObject({ scope: 'membership', teams: [{ teamId: own.team.id }] });
    expect((await errorOf(fixture.ask(teams.get, { team_id: other.team.id }, context))).code).toBe('not_found');
    expect((await errorOf(fixture.ask(users.issueKey, {}, context))).code).toBe('forbidden');
    const { url } = await fixture.call(fixture.admin, links.create, { email });
    await use(url, 'another good phrase');
    const whole = await contextOf(fixture, await logIn(fixture, { email }, undefined, 'another good phrase'));
    expect(whole.caller).toMatchObject({ userId: user_id, scope: 'user' });
    expect(whole.caller.teams).toHaveLength(2);
  });

  it('makes an account that its owner takes over by a link of the operator, with nothing that somebody else has put on it', async () => {
    const email = fresh();
    const { invitation, user_id } = await invite(email);
    await use(invitation?.url, 'of somebody else');
    const theirs = await contextOf(fixture, await logIn(fixture, { email }, undefined, 'of somebody else'));
    const { secret } = await fixture.ask(secondFactors.begin, {}, theirs);
    await fixture.ask(
      secondFactors.confirm,
      { code: new TOTP({ secret: Secret.fromBase32(secret) }).generate() },
      theirs,
    );
    await fixture.query(
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
       VALUES (gen_random_uuid(), $1, 'theirs', '', 0, '{}', 'Theirs')`,
      [user_id],
    );
    await use((await fixture.call(fixture.admin, links.create, { email })).url);
    const session = await logIn(fixture, { email });
    expect(session.user.second_factor).toEqual({ is_set: false, recovery_codes: 0, passkeys: 0 });
    expect((await errorOf(fixture.ask(sessions.verify, { id: theirs.caller.credential.id }, gateway))).code).toBe(
      'unauthenticated',
    );
    expect((await contextOf(fixture, session)).caller).toMatchObject({ scope: 'user' });
  });

  it('makes an account that its owner takes over as one that is invited, and with no key to the team in which it acted', async () => {
    const email = fresh();
    const { invitation, user_id, api_key } = await invite(email);
    await use(invitation?.url, 'of somebody else');
    const other = await fixture.createTeam('team_owner');
    const joined = await invite(email, other);
    await use(joined.invitation?.url, 'of somebody else');
    const theirs = await contextOf(fixture, await logIn(fixture, { email }, undefined, 'of somebody else'));
    const holder = { team_id: own.team.id, user_id };
    const issued = await fixture.ask(members.issueKey, { ...holder, grace_seconds: 3600 }, theirs);
    for (const made of [own, other]) expect(await memberIn(email, made)).toMatchObject({ status: 'active' });
    await use((await fixture.call(fixture.admin, links.create, { email })).url);
    for (const made of [own, other]) expect(await memberIn(email, made)).toMatchObject({ status: 'invited' });
    expect(await toldOf(user_id, 3)).toEqual([true, false, true]);
    // What it loses by this, others must keep.
    expect((await changesOf(user_id, 3)).at(-1)).not.toHaveProperty('had_not_joined');
    for (const key of [api_key, issued.api_key])
      expect((await errorOf(fixture.verify(key ?? ''))).code).toBe('unauthenticated');
    expect((await fixture.verify(joined.api_key ?? '')).teams).toMatchObject([{ team_id: other.team.id }]);
    const session = await contextOf(fixture, await logIn(fixture, { email }));
    await fixture.ask(invitations.accept, { team_id: own.team.id }, session);
    expect(await memberIn(email)).toMatchObject({ status: 'active' });
    // The next link of the operator takes nothing over.
    await use((await fixture.call(fixture.admin, links.create, { email })).url);
    expect(await memberIn(email)).toMatchObject({ status: 'active' });
  });

  it('is of no use while the team is suspended, and of use again after that', async () => {
    const made = await fixture.createTeam('team_owner');
    const [email, joining] = [fresh(), await somebody(fixture)];
    const [{ invitation }] = [await invite(email, made), await invite(joining.email, made)];
    const accept = async () =>
      fixture.ask(
        invitations.accept,
        { team_id: made.team.id },
        await contextOf(fixture, await logIn(fixture, joining)),
      );
    await fixture.call(fixture.admin, teams.suspend, { team_id: made.team.id });
    expect([(await errorOf(use(invitation?.url))).code, (await errorOf(accept())).code]).toEqual([
      'team_suspended',
      'team_suspended',
    ]);
    // Whoever is not invited is told no more than before.
    const stranger = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    expect((await errorOf(fixture.ask(invitations.accept, { team_id: made.team.id }, stranger))).code).toBe(
      'not_found',
    );
    expect(await memberIn(email, made)).toMatchObject({ status: 'invited' });
    await fixture.call(fixture.admin, teams.unsuspend, { team_id: made.team.id });
    await use(invitation?.url);
    await accept();
    expect(await memberIn(email, made)).toMatchObject({ status: 'active' });
  });

  it('sets no password on an account that exists, and is accepted with the one it has', async () => {
    const person: Person = await somebody(fixture);
    const { invitation } = await invite(person.email);
    expect((await errorOf(use(invitation?.url, 'chosen by somebody else'))).code).toBe('unauthenticated');
    await logIn(fixture, person);
    await use(invitation?.url);
    expect(await memberIn(person.email)).toMatchObject({ status: 'active' });
    expect((await errorOf(use(invitation?.url))).code).toBe('unauthenticated');
  });

  it('sets none on an account without a password that has joined a team or has a key of its own', async () => {
    const { userIds, emails } = await fixture.createTeam('viewer');
    await fixture.wholeKeyOf(userIds[0] ?? '');
    const { invitation } = await invite(emails[0] ?? '');
    expect((await errorOf(use(invitation?.url))).code).toBe('forbidden');
  });

  it('and of the operator, who has no password yet, sets none', async () => {
    await fixture.query(`DELETE FROM password`);
    const { invitation } = await invite('operator@example.com');
    expect((await errorOf(use(invitation?.url))).code).toBe('forbidden');
  });

  it('is one of several: a link of one team leaves that of another as it is', async () => {
    const email = fresh();
    const other = await fixture.createTeam('team_owner');
    const [here, there] = [await invite(email), await invite(email, other)];
    await use(here.invitation?.url);
    await use(there.invitation?.url);
    expect(await memberIn(email, other)).toMatchObject({ status: 'active' });
  });
});

describe('invitations of a team', () => {
  it('are told of as of somebody who had not joined before either, until they are accepted', async () => {
    const [owner = ''] = own.keys;
    const path = ({ user_id }: TeamMember) => ({ team_id: own.team.id, user_id });
    const hadNotJoined = async ({ user_id }: TeamMember, count: number) =>
      (await changesOf(user_id, count)).map(({ had_not_joined = false }) => had_not_joined);
    const revoked = await invite(fresh());
    await fixture.call(owner, members.changeRole, { ...path(revoked), role: 'viewer' });
    await fixture.call(owner, members.remove, path(revoked));
    expect(await hadNotJoined(revoked, 3)).toEqual([true, true, true]);
    const accepted = await invite(fresh());
    await use(accepted.invitation?.url, password, 'Ada');
    await fixture.call(owner, members.changeRole, { ...path(accepted), role: 'viewer' });
    await fixture.call(owner, members.remove, path(accepted));
    expect(await hadNotJoined(accepted, 4)).toEqual([true, true, false, false]);
  });

  it('are listed, sent again and revoked by its administrators', async () => {
    const made = await fixture.createTeam('team_owner', 'member');
    const [admin = '', member = ''] = made.keys;
    const email = fresh();
    const first = await invite(email, made);
    const { data } = await fixture.call(admin, invitations.list, { team_id: made.team.id });
    const page = await fixture.call(admin, invitations.list, { team_id: made.team.id, page: 2, limit: 1 });
    expect(page).toEqual({ data: data.slice(1, 2), pagination: { page: 2, limit: 1, total: data.length } });
    expect(data.length).toBeGreaterThan(1);
    expect((await errorOf(fixture.call(fixture.admin, invitations.list, { team_id: unknownId }))).code).toBe(
      'not_found',
    );
    const found = data.find((invitation) => invitation.email === email);
    expect(found).toMatchObject({
      user_id: first.user_id,
      name: 'As sent',
      role: 'member',
      expires_at: first.invitation?.expires_at,
    });
    const path = { team_id: made.team.id, invitation_id: found?.id ?? '' };
    expect((await errorOf(fixture.call(member, invitations.list, { team_id: made.team.id }))).code).toBe('forbidden');
    const again = await fixture.call(admin, invitations.resend, path);
    expect((await errorOf(use(first.invitation?.url))).code).toBe('unauthenticated');
    await fixture.call(admin, invitations.revoke, path);
    expect((await errorOf(use(again.url))).code).toBe('unauthenticated');
    expect(await memberIn(email, made)).toBeUndefined();
    expect((await errorOf(fixture.call(admin, invitations.resend, path))).code).toBe('not_found');
  });

  it('have the expiry of their own link, whatever links others have, and the person to other teams', async () => {
    const [made, other] = [await fixture.createTeam('team_owner'), await fixture.createTeam('team_owner')];
    const email = fresh();
    const { invitation, user_id } = await invite(email, made);
    await invite(fresh(), made);
    await invite(email, other);
    const later = `UPDATE one_time_link SET expires_at = expires_at + interval '1 hour' WHERE team_id <> $1 OR user_id <> $2`;
    await fixture.query(later, [made.team.id, user_id]);
    const { data } = await fixture.call(made.keys[0] ?? '', invitations.list, { team_id: made.team.id });
    expect(data.find((one) => one.email === email)?.expires_at).toBe(invitation?.expires_at);
  });

  it('are sent once for one idempotency key, and the link of that once stays good', async () => {
    const made = await fixture.createTeam('team_owner');
    const [admin = ''] = made.keys;
    await invite(fresh(), made);
    const [{ id: invitation_id = '' } = {}] = (await fixture.call(admin, invitations.list, { team_id: made.team.id }))
      .data;
    const resend = () => fixture.call(admin, invitations.resend, { team_id: made.team.id, invitation_id }, 'again');
    const sent = await resend();
    expect(await resend()).toEqual({ ...sent, url: null });
    await use(sent.url);
  });

  it('are not there for another team', async () => {
    const other = await fixture.createTeam('team_owner');
    const stranger = other.keys[0] ?? '';
    const { data } = await fixture.call(owner, invitations.list, { team_id: own.team.id });
    const paths = [
      { team_id: own.team.id, invitation_id: data[0]?.id ?? '' },
      { team_id: own.team.id, invitation_id: unknownId },
      // As if it were one of the stranger's own team.
      { team_id: other.team.id, invitation_id: data[0]?.id ?? '' },
    ];
    for (const path of paths) {
      for (const operation of [invitations.resend, invitations.revoke] as const) {
        expect((await errorOf(fixture.call(stranger, operation, path))).code).toBe('not_found');
      }
      expect((await errorOf(fixture.call(stranger, invitations.list, { team_id: own.team.id }))).code).toBe(
        'not_found',
      );
    }
  });

  it('are accepted by the person who is logged in, once, and by nobody else', async () => {
    const person = await somebody(fixture);
    const { user_id } = await invite(person.email);
    const context = await contextOf(fixture, await logIn(fixture, person));
    await fixture.ask(invitations.accept, { team_id: own.team.id }, context);
    expect(await memberIn(person.email)).toMatchObject({ status: 'active' });
    expect(await toldOf(user_id, 2)).toEqual([true, false]);
    expect((await errorOf(fixture.ask(invitations.accept, { team_id: own.team.id }, context))).code).toBe('conflict');
    const other = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    expect((await errorOf(fixture.ask(invitations.accept, { team_id: own.team.id }, other))).code).toBe('not_found');
    expect((await errorOf(fixture.call(owner, invitations.accept, { team_id: own.team.id }))).code).toBe('forbidden');
  });

  it('are accepted, and sent again, once by calls of one key', async () => {
    const person = await somebody(fixture);
    const { user_id } = await invite(person.email);
    const keyed = {
      ...(await contextOf(fixture, await logIn(fixture, person))),
      idempotency: { key: 'a', scope: user_id, fingerprint: 'f' },
    };
    const { data } = await fixture.call(owner, invitations.list, { team_id: own.team.id });
    const path = { team_id: own.team.id, invitation_id: data.find((one) => one.user_id === user_id)?.id ?? '' };
    const resend = () => fixture.call(owner, invitations.resend, path, 'once');
    const sent = await resend();
    expect(sent.url).toContain('#');
    expect(await resend()).toEqual({ ...sent, url: null });
    for (const _call of [1, 2])
      expect(await fixture.ask(invitations.accept, { team_id: own.team.id }, keyed)).toEqual({});
    expect(await memberIn(person.email)).toMatchObject({ status: 'active' });
  });
});
