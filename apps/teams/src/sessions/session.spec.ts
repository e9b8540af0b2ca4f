import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { passwords, sessions, users } from '@atoll/contracts/teams';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';
import { SessionsService } from './session.service.js';
import {
  afterGrace,
  contextOf,
  elsewhere,
  gateway,
  home,
  logIn,
  password,
  refresh,
  somebody,
  verify,
} from './session-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ logInTries: '5/600' });
});
afterAll(() => fixture.stop());

const codeOf = async (call: Promise<unknown>): Promise<string> => (await errorOf(call)).code;

describe('a log-in', () => {
  it('opens a session: an access token of 15 minutes that says who and by which session, and the user of the profile', async () => {
    const person = await somebody(fixture);
    const opened = await logIn(fixture, person);
    expect(opened).toMatchObject({
      expires_in: 900,
      refresh_expires_in: 12 * 3600,
      user: { id: person.userId, email: person.email },
    });
    const { iat = 0, ...claims } = decodeJwt(opened.access_token);
    expect(claims).toEqual({
      iss: 'http://localhost:3000',
      aud: 'atoll',
      sub: person.userId,
      sid: opened.session_id,
      nbf: iat,
      exp: iat + 900,
    });
    const { keys } = await fixture.ask(sessions.keys, {}, gateway);
    expect(keys.map(({ kid }) => kid)).toContain(decodeProtectedHeader(opened.access_token).kid);
    const profile = await fixture.ask(users.profile, {}, await contextOf(fixture, opened));
    expect(profile).toEqual(opened.user);
  });

  it('answers an unknown address, a user without a password and a wrong password alike, after the same statements', async () => {
    const person = await somebody(fixture);
    const [email = ''] = (await fixture.createTeam('member')).emails;
    const tries = [person.email, email, 'nobody@example.com'].map(
      (address) => () => logIn(fixture, { email: address }, home, 'wrong password'),
    );
    const answers: object[] = [];
    for (const attempt of tries) answers.push((await errorOf(attempt())).toWire());
    expect(answers[0]).toEqual({ code: 'unauthenticated', message: 'The e-mail address or the password is wrong.' });
    expect(answers).toEqual([answers[0], answers[0], answers[0]]);
    const statements: string[][] = [];
    for (const attempt of tries) statements.push(await fixture.statementsOf(attempt));
    expect(statements[0]).toHaveLength(2);
    expect(statements).toEqual([statements[0], statements[0], statements[0]]);
  });

  it.each(['', '  ', '+tag', '\u202eabc'])(
    'takes an address in its one spelling, and refuses what is none: %j',
    async (prefix) => {
      const person = await somebody(fixture);
      const spelt = prefix.trim() === '' ? `${person.email.toUpperCase()}` : `${prefix}${person.email}`;
      const attempt = logIn(fixture, { email: spelt });
      if (prefix.trim() === '') expect((await attempt).user.id).toBe(person.userId);
      else expect(['invalid_input', 'unauthenticated']).toContain(await codeOf(attempt));
    },
  );

  it('is slowed after failures, for addresses that are unknown too, and not from where the user has logged in before', async () => {
    const person = await somebody(fixture);
    await logIn(fixture, person, home);
    for (const email of [person.email, 'unknown@example.com']) {
      for (let attempt = 0; attempt < 5; attempt++) {
        expect(await codeOf(logIn(fixture, { email }, elsewhere, 'wrong password'))).toBe('unauthenticated');
      }
      const refused = await errorOf(logIn(fixture, { email }, elsewhere));
      expect([refused.code, refused.details.retryAfterSeconds]).toEqual(['too_many_requests', 120]);
    }
    expect((await logIn(fixture, person, home)).user.id).toBe(person.userId);
  });

  it('costs a try only where it fails', async () => {
    const person = await somebody(fixture);
    for (let attempt = 0; attempt < 8; attempt++) await logIn(fixture, person, elsewhere);
  });

  it('beyond 100 sessions of one user ends the one of them that was used the longest ago', async () => {
    const [stranger, person] = [await somebody(fixture), await somebody(fixture)];
    const another = await logIn(fixture, stranger);
    const first = await logIn(fixture, person);
    await fixture.query(
      `INSERT INTO session (id, user_id, address, device, idle_until, expires_at)
       SELECT gen_random_uuid(), user_id, address, device, idle_until, expires_at FROM session, generate_series(1, 999) WHERE id = $1`,
      [first.session_id],
    );
    const last = await logIn(fixture, person);
    const { data } = await fixture.ask(sessions.list, {}, await contextOf(fixture, last));
    expect([data.length, data.some(({ id }) => id === last.session_id)]).toEqual([100, true]);
    await verify(fixture, another);
  });

  it('that ends another of its user, by whatever way it was begun, is told to gateways, which drop what they know', async () => {
    const first = await logIn(fixture, await somebody(fixture));
    await fixture.query(
      `INSERT INTO session (id, user_id, address, device, idle_until, expires_at)
       SELECT gen_random_uuid(), user_id, address, device, idle_until, expires_at FROM session, generate_series(1, 99) WHERE id = $1`,
      [first.session_id],
    );
    fixture.credentialsChanged.splice(0);
    const context = await contextOf(fixture, first);
    await fixture.get(SessionsService).open(first.user.id, { ...elsewhere, network: 'n' }, context);
    expect(fixture.credentialsChanged).toEqual([first.user.id]);
    await fixture.get(SessionsService).open(first.user.id, { ...elsewhere, network: 'n' }, context);
    expect(fixture.credentialsChanged).toHaveLength(2);
  });
});

describe('a refresh', () => {
  it('rotates the token, and a token that was rotated before ends the session for whoever holds it', async () => {
    const first = await logIn(fixture, await somebody(fixture));
    const second = await refresh(fixture, first);
    const third = await refresh(fixture, second);
    expect(new Set([first, second, third].map(({ refresh_token }) => refresh_token)).size).toBe(3);
    expect(await codeOf(refresh(fixture, first))).toBe('unauthenticated');
    expect(await codeOf(refresh(fixture, third))).toBe('unauthenticated');
    expect(await codeOf(verify(fixture, first))).toBe('unauthenticated');
    expect(fixture.credentialsChanged).toContain(first.user.id);
  });

  it('of many tabs at once gives all of them the same next token', async () => {
    const first = await logIn(fixture, await somebody(fixture));
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(fixture, first)));
    expect(new Set(answers.map(({ refresh_token }) => refresh_token)).size).toBe(1);
    await afterGrace(fixture, first);
    await refresh(fixture, answers[0] ?? first);
    expect(await verify(fixture, first)).toMatchObject({ session_id: first.session_id });
  });

  it('by the owner after a thief ends what the thief has: one access token', async () => {
    const stolen = await logIn(fixture, await somebody(fixture));
    const thief = await refresh(fixture, stolen, elsewhere);
    await afterGrace(fixture, stolen);
    expect(await codeOf(refresh(fixture, stolen))).toBe('unauthenticated');
    expect(await codeOf(refresh(fixture, thief, elsewhere))).toBe('unauthenticated');
    expect(await codeOf(verify(fixture, thief))).toBe('unauthenticated');
  });

  it.each(['', 'x', `${'0'.repeat(32)}.1.${'A'.repeat(43)}`])(
    'refuses a token that nobody made: %j',
    async (refresh_token) => {
      expect(['unauthenticated', 'invalid_input']).toContain(await codeOf(refresh(fixture, { refresh_token })));
    },
  );

  it('refuses a token whose generation was raised by hand', async () => {
    const first = await logIn(fixture, await somebody(fixture));
    const raised = first.refresh_token.replace('.1.', '.2.');
    expect(await codeOf(refresh(fixture, { refresh_token: raised }))).toBe('unauthenticated');
    await refresh(fixture, first);
  });

  it('ends with the idle time, and with the life of the session, whatever is done with it', async () => {
    for (const column of ['idle_until', 'expires_at']) {
      const session = await logIn(fixture, await somebody(fixture));
      await fixture.query(`UPDATE session SET ${column} = now() WHERE id = $1`, [session.session_id]);
      expect(await codeOf(refresh(fixture, session))).toBe('unauthenticated');
      expect(await codeOf(verify(fixture, session))).toBe('unauthenticated');
    }
    const session = await logIn(fixture, await somebody(fixture));
    await fixture.query(`UPDATE session SET expires_at = now() + interval '5 minutes' WHERE id = $1`, [
      session.session_id,
    ]);
    const last = await refresh(fixture, session);
    expect([last.expires_in, last.refresh_expires_in].every((seconds) => seconds <= 300)).toBe(true);
  });
});

describe('the end of a session', () => {
  it('by log-out holds for every token of it, and may be repeated', async () => {
    const session = await logIn(fixture, await somebody(fixture));
    const next = await refresh(fixture, session);
    expect(await fixture.ask(sessions.logOut, { refresh_token: session.refresh_token }, gateway)).toEqual({
      user_id: session.user.id,
    });
    expect(await fixture.ask(sessions.logOut, { refresh_token: session.refresh_token }, gateway)).toEqual({
      user_id: null,
    });
    expect(await codeOf(refresh(fixture, next))).toBe('unauthenticated');
  });

  it('by a change of the password leaves the session that changed it', async () => {
    const person = await somebody(fixture);
    const [one, other] = [await logIn(fixture, person), await logIn(fixture, person)];
    const context = await contextOf(fixture, one);
    expect(
      await codeOf(fixture.ask(passwords.change, { current: 'wrong password', new: 'another good phrase' }, context)),
    ).toBe('forbidden');
    await fixture.ask(passwords.change, { current: password, new: 'another good phrase' }, context);
    expect(await codeOf(verify(fixture, other))).toBe('unauthenticated');
    await refresh(fixture, one);
    expect(await codeOf(logIn(fixture, person))).toBe('unauthenticated');
    await logIn(fixture, person, home, 'another good phrase');
  });

  it('by its user, who sees their own sessions and no other', async () => {
    const person = await somebody(fixture);
    const [one, other] = [await logIn(fixture, person, home), await logIn(fixture, person, elsewhere)];
    const stranger = await logIn(fixture, await somebody(fixture));
    const context = await contextOf(fixture, one);
    const { data } = await fixture.ask(sessions.list, {}, context);
    expect(data.map(({ id, address, device, current }) => ({ id, address, device, current }))).toEqual([
      { id: other.session_id, address: elsewhere.address, device: elsewhere.device, current: false },
      { id: one.session_id, address: home.address, device: home.device, current: true },
    ]);
    for (const id of [stranger.session_id, unknownId])
      expect(await codeOf(fixture.ask(sessions.end, { id }, context))).toBe('not_found');
    await fixture.ask(sessions.end, { id: other.session_id }, context);
    expect(await codeOf(verify(fixture, other))).toBe('unauthenticated');
    await fixture.ask(sessions.endAll, {}, context);
    expect(await codeOf(verify(fixture, one))).toBe('unauthenticated');
    await verify(fixture, stranger);
  });

  it('by the operator, and by no other user', async () => {
    const person = await somebody(fixture);
    const session = await logIn(fixture, person);
    const stranger = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    expect(await codeOf(fixture.ask(sessions.endAll, { user_id: person.userId }, stranger))).toBe('forbidden');
    expect(await codeOf(fixture.call(fixture.admin, sessions.endAll, { user_id: unknownId }))).toBe('not_found');
    await fixture.call(fixture.admin, sessions.endAll, { user_id: person.userId });
    expect(await codeOf(verify(fixture, session))).toBe('unauthenticated');
  });
});

describe('what belongs to a user', () => {
  it('is refused to a key of one membership', async () => {
    const [key = ''] = (await fixture.createTeam('team_owner')).keys;
    expect(await codeOf(fixture.call(key, sessions.list, {}))).toBe('forbidden');
    expect(await codeOf(fixture.call(key, sessions.end, { id: unknownId }))).toBe('forbidden');
    expect(await codeOf(fixture.call(key, passwords.change, { current: password, new: 'another good phrase' }))).toBe(
      'forbidden',
    );
  });

  it('takes a log-in of the last 10 minutes where it outlasts the session: a key', async () => {
    const session = await logIn(fixture, await somebody(fixture));
    const context = await contextOf(fixture, session);
    expect(await fixture.ask(users.issueKey, {}, context)).toMatchObject({ api_token: true });
    await fixture.query(`UPDATE session SET created_at = created_at - interval '10 minutes' WHERE id = $1`, [
      session.session_id,
    ]);
    expect(await codeOf(fixture.ask(users.issueKey, {}, context))).toBe('forbidden');
    await fixture.query('UPDATE session SET ended_at = now() WHERE id = $1', [session.session_id]);
    expect(await codeOf(fixture.ask(users.issueKey, {}, context))).toBe('unauthenticated');
  });
});
