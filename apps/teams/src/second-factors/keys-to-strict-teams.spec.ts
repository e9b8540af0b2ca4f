import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemContext } from '@atoll/rpc';
import {
  invitations,
  isClosedTo,
  members,
  membershipChanged,
  secondFactors,
  teamDirectory,
  teams,
  users,
  type MembershipChanged,
  type OpenedSession,
} from '@atoll/contracts/teams';
import { Secret, TOTP } from 'otpauth';
import { DataSource } from 'typeorm';
import { KeysWithoutFactors1891000000000 } from '../database/migrations/1891000000000-keys-without-factors.js';
import { contextOf, gateway, logIn, somebody } from '../sessions/session-fixture.js';
import type { SsoProviderSettings } from '../sso/sso-file.js';
import { SsoMemberships } from '../sso/sso-memberships.js';
import { inLine } from '../teams/held-teams-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  fixture.asManyReplicas();
});
afterAll(() => fixture.stop());

const closed =
  'This team requires a second factor, which this API key lacks. ' +
  'Accept the invitation if you have not; then create a key in a session with a second factor.';

/** A user who has logged in by password, and is invited to a team; with `isStrict` it requires a second factor. */
async function invitedTo({ isStrict }: { isStrict: boolean }) {
  const { team, keys } = await fixture.createTeam('team_owner');
  const [owner = ''] = keys;
  const person = await somebody(fixture);
  const session = await logIn(fixture, person);
  const team_id = team.id;
  const require = (require_second_factor: boolean) =>
    fixture.call(owner, teams.update, { team_id, require_second_factor });
  const invite = () =>
    fixture.call(owner, members.add, { team_id, email: person.email, name: 'Sue', role: 'team_admin' });
  const accept = async () => fixture.ask(invitations.accept, { team_id }, await contextOf(fixture, session));
  if (isStrict) await require(true);
  await invite();
  return { ...person, team_id, owner, session, require, accept };
}

const issue = async (session: OpenedSession) =>
  (await fixture.ask(users.issueKey, {}, await contextOf(fixture, session))).api_key;

const addFactor = async (session: OpenedSession) => {
  const context = await contextOf(fixture, session);
  const { secret } = await fixture.ask(secondFactors.begin, {}, context);
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  await fixture.ask(secondFactors.confirm, { code }, context);
};

/**
 * Whether the team is open to the key; what it may do in a team that is closed, it may nowhere, and what it has opened
 * there is closed.
 */
async function isOpenTo(key: string, team_id: string): Promise<boolean> {
  const listed = (await fixture.call(key, teams.list, { limit: 100 })).data.some(({ id }) => id === team_id);
  const asked = [
    () => fixture.call(key, teams.get, { team_id }),
    () => fixture.call(key, teams.update, { team_id, description: 'Ours' }),
  ];
  for (const ask of asked) {
    if (listed) await ask();
    else expect(await errorOf(ask())).toMatchObject({ code: 'forbidden', message: closed });
  }
  const { credential, userId: user_id } = await fixture.callerOf(key);
  const ask = systemContext('pods');
  const [live] = (await fixture.ask(teamDirectory.liveCredentials, { credentials: [credential] }, ask)).credentials;
  const [member] = (await fixture.ask(teamDirectory.roles, { members: [{ user_id, team_id }] }, ask)).members;
  expect(live && member && isClosedTo(live, member)).toBe(!listed);
  return listed;
}

describe('a key that a session without a second factor has made', () => {
  it('opens no team that required one when its user was invited, before and after the user has accepted', async () => {
    const { team_id, session, accept } = await invitedTo({ isStrict: true });
    const key = await issue(session);
    expect(await isOpenTo(key, team_id)).toBe(false);
    await accept();
    expect(await isOpenTo(key, team_id)).toBe(false);
    // Nor does one that it makes in its own place.
    const { api_key: next } = await fixture.call(key, users.issueKey, {});
    expect(await isOpenTo(next, team_id)).toBe(false);
    await addFactor(session);
    expect(await isOpenTo(next, team_id)).toBe(false);
    expect(await isOpenTo(await issue(session), team_id)).toBe(true);
  });

  it.each([
    ['opens none, either, that required one when', true],
    ['goes on opening one that required none when', false],
  ])('%s single sign-on made its user join', async (_what, isStrict) => {
    const { team_id, userId, session, require } = await invitedTo({ isStrict });
    await fixture.query('DELETE FROM membership WHERE user_id = $1 AND team_id = $2', [userId, team_id]);
    const key = await issue(session);
    const grants = [{ value: 'all', team_id, role: 'team_admin' }];
    const provider = { id: 'corp', mapping: { claim: 'groups', grants } } as unknown as SsoProviderSettings;
    await fixture.get(SsoMemberships).apply(userId, provider, ['all'], gateway);
    await require(true);
    expect(await isOpenTo(key, team_id)).toBe(!isStrict);
  });

  it('opens none that required one when a replica of an earlier release took its user in', async () => {
    const { team_id, session, userId } = await invitedTo({ isStrict: true });
    const key = await issue(session);
    await fixture.query(
      `UPDATE membership SET status = 'active', accepted_at = now() WHERE team_id = $1 AND user_id = $2`,
      [team_id, userId],
    );
    expect(await isOpenTo(key, team_id)).toBe(false);
  });

  it('opens none that began to require one while its user was about to join', async () => {
    const { team_id, session, require, accept } = await invitedTo({ isStrict: false });
    const key = await issue(session);
    const outcomes = await inLine(fixture, team_id, [() => require(true), accept]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    expect(await isOpenTo(key, team_id)).toBe(false);
  });

  it('stays without a team that required one when its user joined, whenever it requires one again', async () => {
    const { team_id, session, require, accept } = await invitedTo({ isStrict: true });
    const key = await issue(session);
    await accept();
    for (const isRequired of [false, true]) {
      await require(isRequired);
      expect(await isOpenTo(key, team_id)).toBe(!isRequired);
    }
  });

  it('declines the invitation, as the session may', async () => {
    const { team_id, userId, owner, session } = await invitedTo({ isStrict: true });
    await fixture.call(await issue(session), members.remove, { team_id, user_id: userId });
    const { data } = await fixture.call(owner, members.list, { team_id });
    expect(data.map(({ user_id }) => user_id)).not.toContain(userId);
  });

  it('goes on opening a team that has required none when its user joined, whenever it requires one later', async () => {
    const { team_id, session, require, accept } = await invitedTo({ isStrict: false });
    const key = await issue(session);
    expect(await isOpenTo(key, team_id)).toBe(true);
    await accept();
    for (const isRequired of [true, false, true]) {
      await require(isRequired);
      expect(await isOpenTo(key, team_id)).toBe(true);
    }
  });

  it('goes on opening the team that its user has created', async () => {
    const session = await logIn(fixture, await somebody(fixture));
    const { id: team_id } = await fixture.ask(teams.create, { name: 'Own' }, await contextOf(fixture, session));
    const key = await issue(session);
    await fixture.call(key, teams.update, { team_id, require_second_factor: true });
    expect(await isOpenTo(key, team_id)).toBe(true);
  });

  it.each([
    ['opens none that required one at the upgrade', true],
    ['goes on opening one that required none at the upgrade', false],
  ])('%s where its user had joined before', async (_what, isStrict) => {
    const { team_id, userId, session, require, accept } = await invitedTo({ isStrict });
    const key = await issue(session);
    await accept();
    await fixture.query('UPDATE membership SET required_factor_at_join = NULL WHERE user_id = $1', [userId]);
    const runner = fixture.get(DataSource).createQueryRunner();
    await new KeysWithoutFactors1891000000000().up(runner);
    await runner.release();
    await require(true);
    expect(await isOpenTo(key, team_id)).toBe(!isStrict);
  });

  it('opens no team that requires one while its user is invited, until it requires none', async () => {
    const { team_id, session, require } = await invitedTo({ isStrict: false });
    const key = await issue(session);
    await require(true);
    expect(await isOpenTo(key, team_id)).toBe(false);
    await require(false);
    expect(await isOpenTo(key, team_id)).toBe(true);
  });
});

describe('a key that a session with a second factor has made', () => {
  it('opens a team that requires one once its user has accepted the invitation', async () => {
    const { team_id, session, accept } = await invitedTo({ isStrict: true });
    await addFactor(session);
    const key = await issue(session);
    expect(await isOpenTo(key, team_id)).toBe(false);
    await accept();
    expect(await isOpenTo(key, team_id)).toBe(true);
    const { api_key: next } = await fixture.call(key, users.issueKey, {});
    expect(await isOpenTo(next, team_id)).toBe(true);
  });
});

describe('services that place SSH keys are told', () => {
  it.each([true, false])('whether the team required a second factor when its user joined: %s', async (isStrict) => {
    const { team_id, userId, accept } = await invitedTo({ isStrict });
    await accept();
    const ofUser = (all: MembershipChanged[]) => all.filter(({ user_id }) => user_id === userId);
    const told = ofUser(await fixture.told(membershipChanged, team_id, (all) => ofUser(all).length === 2));
    expect(told.map(({ required_factor_at_join = false }) => required_factor_at_join)).toEqual([false, isStrict]);
  });
});

describe('caches of credentials are told', () => {
  it('when an invited user with a key reaches more in a team, or less', async () => {
    const { userId, session, require, accept } = await invitedTo({ isStrict: false });
    await addFactor(session);
    await issue(session);
    const told = async (change: () => Promise<unknown>) => {
      fixture.credentialsChanged.splice(0);
      await change();
      return fixture.credentialsChanged;
    };
    expect(await told(() => require(true))).toEqual([userId]);
    expect(await told(() => require(false))).toEqual([userId]);
    expect(await told(accept)).toEqual([userId]);
    expect(await told(() => require(true))).toEqual([]);
  });
});
