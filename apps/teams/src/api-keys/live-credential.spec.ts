import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CallContext } from '@atoll/contracts';
import {
  invitations,
  links,
  members,
  passkeys,
  passwords,
  secondFactors,
  teamBatches,
  teams,
  users,
} from '@atoll/contracts/teams';
import { Secret, TOTP } from 'otpauth';
import { addPasskey, anAuthenticator, answerOf, publicUrl } from '../passkeys/authenticator-fixture.js';
import { contextOf, logIn, password, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ publicUrl });
});
afterAll(() => fixture.stop());

/** A call that is ready to be made, with what it needs beforehand. */
type Call = (context: CallContext) => Promise<() => Promise<unknown>>;

/** How a user logs in. */
const factors: Record<string, Call> = {
  'a second factor that is begun': (context) => Promise.resolve(() => fixture.ask(secondFactors.begin, {}, context)),
  'a second factor that is confirmed': async (context) => {
    const { secret } = await fixture.ask(secondFactors.begin, {}, context);
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    return () => fixture.ask(secondFactors.confirm, { code }, context);
  },
  'a passkey that is begun': (context) => Promise.resolve(() => fixture.ask(passkeys.begin, {}, context)),
  'a passkey that is added': async (context) => {
    const added = await answerOf(fixture, context, anAuthenticator());
    return () => fixture.ask(passkeys.finish, added, context);
  },
  'a passkey that is removed': async (context) => {
    const { id } = await addPasskey(fixture, context, anAuthenticator());
    return () => fixture.ask(passkeys.remove, { id }, context);
  },
};

/** What outlasts the session that asks for it. */
const lasting: Record<string, Call> = {
  ...factors,
  'a key': (context) => Promise.resolve(() => fixture.ask(users.issueKey, {}, context)),
};

/** What the operator could do with a session to log in as such for longer than it lasts, or without the factor. */
const ofOperator: Record<string, Call> = {
  'a link for the own account': async (context) => {
    const { email } = await fixture.ask(users.profile, {}, context);
    return () => fixture.ask(links.create, { email }, context);
  },
  'a link that removes second factors': async (context) => {
    const { email } = await somebody(fixture);
    return () => fixture.ask(links.create, { email, remove_second_factors: true }, context);
  },
  'a welcome of the own account': async (context) => {
    const { email } = await fixture.ask(users.profile, {}, context);
    return () => fixture.ask(teamBatches.welcome, { email }, context);
  },
  'a first password of the own account': async (context) => {
    const { id, email } = await fixture.ask(users.profile, {}, context);
    await fixture.query('DELETE FROM password WHERE user_id = $1', [id]);
    return () => fixture.ask(teamBatches.onboard, { email, password }, context);
  },
};

/** What takes a session that has not ended, of whatever age. */
const ofLive: Record<string, Call> = {
  'another password': (context) =>
    Promise.resolve(() =>
      fixture.ask(passwords.change, { current: password, new: 'another horse battery staple' }, context),
    ),
  'another name': (context) => Promise.resolve(() => fixture.ask(users.updateProfile, { name: 'Ada' }, context)),
  'an invitation that is accepted': async (context) => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const { email } = await fixture.ask(users.profile, {}, context);
    const invited = { team_id: team.id, email, name: 'Ada', role: 'member' as const };
    await fixture.call(keys[0] ?? '', members.add, invited);
    return () => fixture.ask(invitations.accept, { team_id: team.id }, context);
  },
  'a team': (context) => Promise.resolve(() => fixture.ask(teams.create, { name: 'Research' }, context)),
  'a one-time link': async (context) => {
    const { email } = await somebody(fixture);
    return () => fixture.ask(links.create, { email }, context);
  },
  'an account that is opened': (context) =>
    Promise.resolve(() => fixture.ask(teamBatches.welcome, { email: `${randomUUID()}@example.com` }, context)),
  'a first password': async (context) => {
    const [email = ''] = (await fixture.createTeam('member')).emails;
    return () => fixture.ask(teamBatches.onboard, { email, password }, context);
  },
};

/** A session of the operator by a password, and a call that is ready to be made in it. */
async function readyFor(call: Call) {
  const person = await somebody(fixture);
  await fixture.query('UPDATE "user" SET platform_admin = true WHERE id = $1', [person.userId]);
  const session = await logIn(fixture, person);
  return { ...person, session, ready: await call(await contextOf(fixture, session)) };
}

/** What becomes of a call whose session, the operator's, changes before it. */
async function after(change: string, call: Call): Promise<string> {
  const { session, ready } = await readyFor(call);
  await fixture.query(`UPDATE session SET ${change} WHERE id = $1`, [session.session_id]);
  return ready().then(
    () => 'done',
    async (error: unknown) => (await errorOf(Promise.reject(error as Error))).code,
  );
}

const passkeyOf = (userId: string) =>
  fixture.query(
    `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
     VALUES (gen_random_uuid(), $1, gen_random_uuid(), '', 0, '{}', 'Of the user')`,
    [userId],
  );

/** What the operator asks for an address, with which its user then logs in. */
const waysIn: Record<string, (key: string, email: string) => Promise<unknown>> = {
  'a link': (key, email) => fixture.call(key, links.create, { email, remove_second_factors: true }),
  'an account with a link': (key, email) => fixture.call(key, teamBatches.welcome, { email }),
  'an account with a password': (key, email) => fixture.call(key, teamBatches.welcome, { email, password }),
  'a first password': (key, email) => fixture.call(key, teamBatches.onboard, { email, password }),
};

it.each(Object.entries(waysIn))('%s by the operator takes no key that was replaced, either', async (_, ask) => {
  const { userId } = await somebody(fixture);
  const [email = ''] = (await fixture.createTeam('member')).emails;
  await fixture.query('UPDATE "user" SET platform_admin = true WHERE id = $1', [userId]);
  const key = await fixture.wholeKeyOf(userId);
  const { api_key: next } = await fixture.call(key, users.issueKey, { grace_seconds: 3600 });
  expect((await errorOf(ask(key, email))).message).toBe(
    'This key was replaced and is valid only for its grace period: it cannot create a link with which a user logs in. Use the new key.',
  );
  await ask(next, email);
});

describe('a key that acts for its user as a whole', () => {
  it.each(Object.entries(factors))('does nothing about %s where its user has a second factor', async (_, call) => {
    const { userId } = await somebody(fixture);
    const ready = await call(await fixture.contextOf(await fixture.wholeKeyOf(userId), users.issueKey, {}));
    await passkeyOf(userId);
    const { code, message } = await errorOf(ready());
    expect([code, message]).toEqual([
      'forbidden',
      'An API key cannot change how its user logs in once the user has a second factor. Log in with the second factor.',
    ]);
  });

  it('adds the first factor of a user who has none', async () => {
    const { userId } = await somebody(fixture);
    const context = await fixture.contextOf(await fixture.wholeKeyOf(userId), users.issueKey, {});
    expect(await addPasskey(fixture, context, anAuthenticator())).toMatchObject({ name: expect.any(String) });
  });

  it('and one to a team are replaced by themselves, whatever factor their user has', async () => {
    const { team, keys, userIds } = await fixture.createTeam('member');
    const [userId = ''] = userIds;
    const whole = await fixture.wholeKeyOf(userId);
    await passkeyOf(userId);
    expect((await fixture.call(whole, users.issueKey, {})).api_key).toMatch(/^atl_/);
    const own = await fixture.call(keys[0] ?? '', members.issueKey, { team_id: team.id, user_id: userId });
    expect(own.api_key).toMatch(/^atl_/);
  });
});

it.each(['now()', `now() + interval '1 minute'`])(
  'a key issues its successor until it expires (%s)',
  async (expiry) => {
    const { team, keys, userIds } = await fixture.createTeam('team_admin');
    const input = { team_id: team.id, user_id: userIds[0] ?? '' };
    const context = await fixture.contextOf(keys[0] ?? '', members.issueKey, input);
    await fixture.query(`UPDATE api_key SET expiry_date = ${expiry} WHERE user_id = $1`, [input.user_id]);
    const asked = fixture.ask(members.issueKey, input, context);
    if (expiry === 'now()') expect((await errorOf(asked)).message).toBe('The API key has expired.');
    else expect((await asked).api_key).toMatch(/^atl_/);
  },
);

describe('whatever the gateway knew of a session', () => {
  it.each(Object.entries({ ...lasting, ...ofOperator, ...ofLive }))(
    '%s takes one that has not ended',
    async (_, call) => {
      expect(await after('ended_at = now()', call)).toBe('unauthenticated');
    },
  );

  it.each(['idle_until', 'expires_at'])('a key and a team take one whose %s is not over', async (end) => {
    for (const call of [lasting['a key'], ofLive['a team']])
      expect(await after(`${end} = now()`, call!)).toBe('unauthenticated');
  });

  it.each(Object.entries({ ...lasting, ...ofOperator }))(
    '%s takes a log-in of the last 10 minutes',
    async (_, call) => {
      expect(await after(`created_at = now() - interval '601 seconds'`, call)).toBe('forbidden');
      expect(await after(`created_at = now() - interval '8 minutes'`, call)).toBe('done');
    },
  );

  it.each(Object.entries(ofLive))('%s takes a log-in of any age', async (_, call) => {
    expect(await after(`created_at = now() - interval '1 hour'`, call)).toBe('done');
  });

  it.each(Object.entries(ofOperator))('%s takes the second factor of the operator who has one', async (_, call) => {
    const { userId, session, ready } = await readyFor(call);
    await passkeyOf(userId);
    expect((await errorOf(ready())).message).toBe(
      'This needs a log-in with your second factor. Log in again, with it.',
    );
    await fixture.query('UPDATE session SET has_second_factor = true WHERE id = $1', [session.session_id]);
    await ready();
  });
});
