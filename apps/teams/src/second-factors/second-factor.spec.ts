import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { invitations, members, secondFactors, sessions, teams, users } from '@atoll/contracts/teams';
import { onOtherClock } from '@atoll/testing';
import { Secret, TOTP } from 'otpauth';
import { contextOf, gateway, home, logIn, somebody, type Person } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ logInTries: '6/600' });
});
afterAll(() => fixture.stop());

const codeOf = async (call: Promise<unknown>): Promise<string> => (await errorOf(call)).code;
const totpOf = (secret: string): TOTP => new TOTP({ secret: Secret.fromBase32(secret) });
/** A code of the step after this one: the one before may have been used. */
const nextCode = (secret: string): string => totpOf(secret).generate({ timestamp: Date.now() + 30_000 });

/** A user with an authenticator, what belongs to it, and the code by which it was added. */
async function withFactor(): Promise<{ person: Person; secret: string; codes: string[]; used: string }> {
  const person = await somebody(fixture);
  const context = await contextOf(fixture, await logIn(fixture, person));
  const { secret, uri } = await fixture.ask(secondFactors.begin, {}, context);
  expect(decodeURIComponent(uri)).toContain(person.email);
  expect(await codeOf(fixture.ask(secondFactors.confirm, { code: '000000' }, context))).toBe('forbidden');
  const used = totpOf(secret).generate();
  const { recovery_codes: codes } = await fixture.ask(secondFactors.confirm, { code: used }, context);
  return { person, secret, codes, used };
}

async function ticketOf(person: Person): Promise<string> {
  const refused = await errorOf(logIn(fixture, person));
  expect([refused.code, refused.details.secondFactor]).toEqual([
    'second_factor_required',
    { ticket: expect.any(String), methods: ['totp', 'recovery_code'], expires_in: 300 },
  ]);
  return refused.details.secondFactor?.ticket ?? '';
}

const second = (ticket: string, code: string) => fixture.ask(secondFactors.logIn, { ticket, code, ...home }, gateway);

describe('a second factor', () => {
  it('is asked for after the password, and each code is good once', async () => {
    const { person, secret, used } = await withFactor();
    const ticket = await ticketOf(person);
    expect(await codeOf(second(ticket, used))).toBe('unauthenticated');
    const code = nextCode(secret);
    const opened = await second(ticket, code);
    expect(opened.user.id).toBe(person.userId);
    expect(await codeOf(second(await ticketOf(person), code))).toBe('unauthenticated');
  });

  it('has ten recovery codes, each good once, at once too', async () => {
    const { person, codes } = await withFactor();
    expect(new Set(codes).size).toBe(10);
    const shown = async () =>
      (
        await fixture.ask(
          users.profile,
          {},
          await contextOf(fixture, await second(await ticketOf(person), codes.pop() ?? '')),
        )
      ).second_factor;
    expect(await shown()).toEqual({ is_set: true, recovery_codes: 9, passkeys: 0 });
    const ticket = await ticketOf(person);
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => second(ticket, codes[0] ?? '')));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await second(ticket, (codes[1] ?? '').toUpperCase().replace('-', ' '));
  });

  it('whose confirmation was not answered says on the next one how to get recovery codes', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const { secret } = await fixture.ask(secondFactors.begin, {}, context);
    const confirm = (code: string) => fixture.ask(secondFactors.confirm, { code }, context);
    const code = totpOf(secret).generate();
    const confirmed = expect.objectContaining({
      code: 'conflict',
      message: 'Your second factor was confirmed already. If you lack its recovery codes, remove it and add it again.',
    });
    const outcomes = await Promise.allSettled([confirm(code), confirm(code)]);
    expect(outcomes).toContainEqual({ status: 'rejected', reason: confirmed });
    expect(outcomes).toContainEqual(expect.objectContaining({ status: 'fulfilled' }));
    expect(await errorOf(confirm(nextCode(secret)))).toEqual(confirmed);
    await fixture.ask(secondFactors.remove, { code: nextCode(secret) }, context);
    await fixture.ask(secondFactors.begin, {}, context);
  });

  it('is nobody else’s: neither a code nor a recovery code of another user is one', async () => {
    const [one, other] = [await withFactor(), await withFactor()];
    for (const code of [nextCode(other.secret), other.codes[0] ?? ''])
      expect(await codeOf(second(await ticketOf(one.person), code))).toBe('unauthenticated');
    await second(await ticketOf(other.person), other.codes[0] ?? '');
    const { user } = await logIn(fixture, await somebody(fixture));
    expect(user.second_factor).toEqual({ is_set: false, recovery_codes: 0, passkeys: 0 });
  });

  it('is sealed in its row, and recovery codes stand in none', async () => {
    const { person, secret, codes } = await withFactor();
    const rows = await fixture.query('SELECT * FROM second_factor WHERE user_id = $1', [person.userId]);
    const digests = await fixture.query<{ digest: Buffer }>('SELECT digest FROM recovery_code WHERE user_id = $1', [
      person.userId,
    ]);
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(digests.map(({ digest }) => digest.toString('utf8')).join()).not.toContain(codes[0]);
  });

  it('refuses six characters that are no digits, to the log-in and to the confirmation', async () => {
    const { person } = await withFactor();
    expect(await codeOf(second(await ticketOf(person), '00\uea0bĸ«ė'))).toBe('unauthenticated');
    const other = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    await fixture.ask(secondFactors.begin, {}, other);
    expect(await codeOf(fixture.ask(secondFactors.confirm, { code: '１２３４５６' }, other))).toBe('forbidden');
  });

  it('is not guessed: wrong codes are few', async () => {
    const { person, secret } = await withFactor();
    const ticket = await ticketOf(person);
    const codes: string[] = [];
    for (let attempt = 0; attempt < 8; attempt++) codes.push(await codeOf(second(ticket, '000000')));
    expect(codes.at(-1)).toBe('too_many_requests');
    expect(await codeOf(second(ticket, nextCode(secret)))).toBe('too_many_requests');
  });

  it('takes a ticket that this server made, of the last 5 minutes', async () => {
    const { person, secret } = await withFactor();
    const ticket = await ticketOf(person);
    const earlier = ticket.replace(/\.(\d+)\./, (_match, minute: string) => `.${Number(minute) + 1}.`);
    for (const bad of ['x', earlier, ticket.replace(/\.[^.]*$/, ''), `${ticket.slice(0, -2)}AA`])
      expect(await codeOf(second(bad, nextCode(secret)))).toBe('unauthenticated');
  });

  it('takes a ticket for the 300 seconds that it announces, at whatever second of a minute it was made', async () => {
    const { person, codes } = await withFactor();
    const at40SecondsMs = 60_000 - (Date.now() % 60_000) + 40_000;
    const ticket = await onOtherClock(at40SecondsMs, () => ticketOf(person));
    const opened = await onOtherClock(at40SecondsMs + 290_000, () => second(ticket, codes[0] ?? ''));
    expect(opened.user.id).toBe(person.userId);
  });

  it('takes a ticket until the minute that stands in it, and no longer', async () => {
    const { person, codes } = await withFactor();
    const [early, late] = [await ticketOf(person), await ticketOf(person)];
    const halfMinutesAfter = (count: number, ticket: string, code = '') => {
      const endMs = Number(/\.(\d+)\./.exec(ticket)?.[1]) * 60_000;
      return onOtherClock(endMs + count * 30_000 - Date.now(), () => second(ticket, code));
    };
    expect((await halfMinutesAfter(-1, early, codes[0])).user.id).toBe(person.userId);
    const { message } = await errorOf(halfMinutesAfter(1, late, codes[1]));
    expect(message).toBe('The ticket has expired. Log in again.');
  });

  it('takes a ticket of the password that the user still has', async () => {
    const { person, codes } = await withFactor();
    const [before, other] = [await ticketOf(person), await withFactor()];
    await fixture.query(
      'UPDATE password SET hash = (SELECT hash FROM password WHERE user_id = $2) WHERE user_id = $1',
      [person.userId, other.person.userId],
    );
    expect(await codeOf(second(before, codes[0] ?? ''))).toBe('unauthenticated');
    await second(await ticketOf(person), codes[0] ?? '');
  });

  it('is confirmed where one was begun, and removed where there is one; nothing else counts as a try', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const [confirm, remove] = [secondFactors.confirm, secondFactors.remove].map(
      (operation) => (code: string) => fixture.ask<{ code: string }, object>(operation, { code }, context),
    );
    for (let attempt = 0; attempt < 8; attempt++) {
      expect([await codeOf(confirm!('000000')), await codeOf(remove!('000000'))]).toEqual(['conflict', 'not_found']);
    }
    const { secret } = await fixture.ask(secondFactors.begin, {}, context);
    await confirm!(totpOf(secret).generate());
  });

  it('is removed with the codes of it alone, of two who remove it at once by one', async () => {
    const { person, codes } = await withFactor();
    const context = await contextOf(fixture, await second(await ticketOf(person), codes[0] ?? ''));
    const remove = (code: string) => fixture.ask(secondFactors.remove, { code }, context);
    const outcomes = await Promise.allSettled(codes.slice(1, 4).map(remove));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is removed by a code of it, and takes a log-in of the last 10 minutes to be added', async () => {
    const { person, codes } = await withFactor();
    const context = await contextOf(fixture, await second(await ticketOf(person), codes[0] ?? ''));
    expect(await codeOf(fixture.ask(secondFactors.begin, {}, context))).toBe('conflict');
    expect(await codeOf(fixture.ask(secondFactors.remove, { code: '000000' }, context))).toBe('forbidden');
    await fixture.ask(secondFactors.remove, { code: codes[1] ?? '' }, context);
    const session = await logIn(fixture, person);
    await fixture.query(`UPDATE session SET created_at = created_at - interval '11 minutes' WHERE id = $1`, [
      session.session_id,
    ]);
    expect(await codeOf(fixture.ask(secondFactors.begin, {}, await contextOf(fixture, session)))).toBe('forbidden');
    const [key = ''] = (await fixture.createTeam('team_owner')).keys;
    expect(await codeOf(fixture.call(key, secondFactors.begin, {}))).toBe('forbidden');
  });
});

describe('the removal of a second factor', () => {
  const factorsOf = ({ userId }: Person) =>
    fixture.query('SELECT FROM second_factor WHERE user_id = $1 AND is_confirmed', [userId]);

  it('takes a log-in of the last 10 minutes, and leaves the code good where it is refused', async () => {
    const { person, codes } = await withFactor();
    const [one, other] = [
      await second(await ticketOf(person), codes[0] ?? ''),
      await second(await ticketOf(person), codes[1] ?? ''),
    ];
    await fixture.query(`UPDATE session SET created_at = created_at - interval '11 minutes' WHERE id = $1`, [
      one.session_id,
    ]);
    const remove = async (session: typeof one) =>
      fixture.ask(secondFactors.remove, { code: codes[2] ?? '' }, await contextOf(fixture, session));
    expect(await errorOf(remove(one))).toMatchObject({
      code: 'forbidden',
      message: 'This needs a log-in within the last 10 minutes. Log in again.',
    });
    expect(await factorsOf(person)).toHaveLength(1);
    await remove(other);
    expect(await factorsOf(person)).toEqual([]);
  });

  it('compares no code for an older log-in, so that wrong ones use up no tries', async () => {
    const { person, codes } = await withFactor();
    const context = await contextOf(fixture, await second(await ticketOf(person), codes[0] ?? ''));
    const credential = { ...context.caller.credential, openedAt: new Date(Date.now() - 660_000).toISOString() };
    const older = { ...context, caller: { ...context.caller, credential } };
    for (let tries = 0; tries < 7; tries += 1)
      expect((await errorOf(fixture.ask(secondFactors.remove, { code: '000000' }, older))).message).toBe(
        'This needs a log-in within the last 10 minutes. Log in again.',
      );
    await fixture.ask(secondFactors.remove, { code: codes[1] ?? '' }, context);
  });

  it('takes a key that was not replaced, and a session that has not ended', async () => {
    const { person, codes } = await withFactor();
    const session = await second(await ticketOf(person), codes[0] ?? '');
    const context = await contextOf(fixture, session);
    const key = await fixture.wholeKeyOf(person.userId);
    await fixture.call(key, users.issueKey, { grace_seconds: 3600 });
    await fixture.query('UPDATE session SET ended_at = now() WHERE id = $1', [session.session_id]);
    const code = codes[1] ?? '';
    expect((await errorOf(fixture.call(key, secondFactors.remove, { code }))).message).toBe(
      'This key was replaced and is valid only for its grace period: it cannot change how its user logs in. Use the new key.',
    );
    expect(await codeOf(fixture.ask(secondFactors.remove, { code }, context))).toBe('unauthenticated');
    expect(await factorsOf(person)).toHaveLength(1);
  });

  it.each([
    ['session', 'This needs a log-in with your second factor. Log in again, with it.'],
    [
      'key',
      'An API key cannot change how its user logs in once the user has a second factor. Log in with the second factor.',
    ],
  ])('takes no other factor of the %s than its code, but a passkey that is left', async (by, refusal) => {
    const { person, codes } = await withFactor();
    const session = await second(await ticketOf(person), codes[0] ?? '');
    // As a provider of single sign-on opens one that knows of no second factor.
    await fixture.query('UPDATE session SET has_second_factor = false WHERE id = $1', [session.session_id]);
    await fixture.query(
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
       VALUES (gen_random_uuid(), $1, 'left', '', 0, '{}', 'Left')`,
      [person.userId],
    );
    const context =
      by === 'session'
        ? await contextOf(fixture, session)
        : await fixture.contextOf(await fixture.wholeKeyOf(person.userId), secondFactors.remove, {});
    const remove = () => fixture.ask(secondFactors.remove, { code: codes[1] ?? '' }, context);
    expect((await errorOf(remove())).message).toBe(refusal);
    await fixture.query('DELETE FROM passkey WHERE user_id = $1', [person.userId]);
    await remove();
    expect(await factorsOf(person)).toEqual([]);
  });
});

describe('a team that requires a second factor', () => {
  it('is closed to sessions without one, and open to those with one and to API keys', async () => {
    const { person, codes } = await withFactor();
    const made = await fixture.createTeam('team_owner');
    const { team } = made;
    const [key = ''] = made.keys;
    await fixture.query(
      `INSERT INTO membership (id, team_id, user_id, role, status) VALUES (gen_random_uuid(), $1, $2, 'team_owner', 'active')`,
      [team.id, person.userId],
    );
    const other = await somebody(fixture);
    await fixture.query(
      `INSERT INTO membership (id, team_id, user_id, role, status) VALUES (gen_random_uuid(), $1, $2, 'team_owner', 'active')`,
      [team.id, other.userId],
    );
    const without = await logIn(fixture, other);
    fixture.credentialsChanged.splice(0);
    const update = await fixture.call(key, teams.update, { team_id: team.id, require_second_factor: true });
    expect(update).toMatchObject({ require_second_factor: true });
    // So that caches look again, and terminals end.
    expect(fixture.credentialsChanged).toEqual([other.userId]);
    await fixture.call(key, teams.update, { team_id: team.id, require_second_factor: true, description: 'Strict' });
    expect(fixture.credentialsChanged).toHaveLength(1);
    const refused = await errorOf(fixture.ask(teams.get, { team_id: team.id }, await contextOf(fixture, without)));
    expect([refused.code, refused.message]).toEqual([
      'forbidden',
      'This team requires a second factor. Add one, or log in with it.',
    ]);
    const listed = await fixture.ask(teams.list, {}, await contextOf(fixture, without));
    expect(listed.data.map(({ id }) => id)).not.toContain(team.id);
    const withOne = await second(await ticketOf(person), codes[0] ?? '');
    await fixture.ask(teams.get, { team_id: team.id }, await contextOf(fixture, withOne));
    await fixture.call(key, teams.get, { team_id: team.id });
    // A key of the user as a whole reaches the team, so whoever makes one must.
    const issue = async (session: typeof without) => fixture.ask(users.issueKey, {}, await contextOf(fixture, session));
    expect((await errorOf(issue(without))).message).toBe(
      'A team of yours, or the role of the operator, requires a second factor for a key that is not limited to a team. ' +
        'Set up a second factor, or log in with yours.',
    );
    expect((await issue(withOne)).api_key).toMatch(/^atl_/);
    await fixture.query('DELETE FROM membership WHERE user_id = $1 AND team_id = $2', [other.userId, team.id]);
    expect((await issue(without)).api_key).toMatch(/^atl_/);
  });
});

describe('who lacks the second factor that a team requires', () => {
  it('declines its invitation and leaves it, removes nobody else, and has no key to it', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const [{ userId, email }, other] = [await somebody(fixture), await somebody(fixture)];
    const [owner = ''] = keys;
    await fixture.call(owner, teams.update, { team_id: team.id, require_second_factor: true });
    const invite = (address: string) =>
      fixture.call(owner, members.add, { team_id: team.id, email: address, name: 'Ada', role: 'team_admin' });
    const session = await logIn(fixture, { email });
    const remove = async (user_id: string) =>
      fixture.ask(members.remove, { team_id: team.id, user_id }, await contextOf(fixture, session));
    const isMember = async () =>
      (await fixture.call(owner, members.list, { team_id: team.id })).data.some(({ user_id }) => user_id === userId);
    await invite(email);
    await invite(other.email);
    const context = await contextOf(fixture, session);
    const ownKey = { team_id: team.id, user_id: userId };
    for (const refused of [
      remove(other.userId),
      fixture.ask(members.issueKey, ownKey, context),
      fixture.ask(members.revokeKey, ownKey, context),
    ])
      expect((await errorOf(refused)).message).toBe('This team requires a second factor. Add one, or log in with it.');
    await remove(userId);
    expect(await isMember()).toBe(false);
    expect(await codeOf(remove(userId))).toBe('not_found');
    await invite(email);
    await fixture.ask(invitations.accept, { team_id: team.id }, await contextOf(fixture, session));
    await remove(userId);
    expect(await isMember()).toBe(false);
  });
});

describe('the operator, where a second factor is required', () => {
  it('does nothing of the operator by a session without one', async () => {
    const strict = await TeamsFixture.start({ operatorSecondFactor: 'required' });
    try {
      const person = await somebody(strict);
      await strict.query('UPDATE "user" SET platform_admin = true WHERE id = $1', [person.userId]);
      const session = await logIn(strict, person);
      const verify = () => strict.ask(sessions.verify, { id: session.session_id }, gateway);
      expect(await verify()).toMatchObject({ platform_admin: false, operator_lacks_second_factor: true });
      const issue = async () => strict.ask(users.issueKey, {}, await contextOf(strict, session));
      expect((await errorOf(issue())).code).toBe('forbidden');
      await strict.query('UPDATE session SET has_second_factor = true WHERE id = $1', [session.session_id]);
      expect(await verify()).toMatchObject({ platform_admin: true, operator_lacks_second_factor: false });
      expect((await issue()).api_key).toMatch(/^atl_/);
    } finally {
      await strict.stop();
    }
  });
});
