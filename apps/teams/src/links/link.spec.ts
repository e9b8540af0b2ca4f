import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { links, members, passwords } from '@atoll/contracts/teams';
import { DataSource } from 'typeorm';
import { contextOf, gateway, logIn, password, somebody, tokenIn, verify } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { LinkTokens } from '../tokens/link-tokens.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const make = async (email: string): Promise<string> =>
  tokenIn((await fixture.call(fixture.admin, links.create, { email })).url);
const use = (token: string, secret = 'another good phrase', name?: string) =>
  fixture.ask(links.use, { token, password: secret, ...(name !== undefined && { name }) }, gateway);

/** A link that was asked for by mail. */
const mailedTo = ({ userId, email }: { userId: string; email: string }): Promise<string> =>
  fixture
    .get(DataSource)
    .transaction((manager) =>
      fixture.get(LinkTokens).issue(manager, { userId, email, isProof: true, replaces: 'none' }),
    )
    .then(({ url }) => tokenIn(url));

describe('a one-time link', () => {
  it('is the address of a page, with its token behind # and in no row', async () => {
    const [email = ''] = (await fixture.createTeam('member')).emails;
    const { url, expires_at } = await fixture.call(fixture.admin, links.create, { email });
    expect(url).toMatch(/^http:\/\/localhost:3000\/link#/);
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(23 * 3600_000);
    const [row] = await fixture.query('SELECT * FROM one_time_link WHERE email = $1', [email]);
    expect(JSON.stringify(row)).not.toContain(tokenIn(url).slice(-43));
  });

  it('sets the password, the name of who is new, and ends every session', async () => {
    const person = await somebody(fixture);
    const session = await logIn(fixture, person);
    expect(await use(await make(person.email), 'another good phrase', 'Mallory')).toEqual({ email: person.email });
    expect((await errorOf(verify(fixture, session))).code).toBe('unauthenticated');
    expect((await errorOf(logIn(fixture, person))).code).toBe('unauthenticated');
    const again = await logIn(fixture, person, undefined, 'another good phrase');
    expect(again.user.name).not.toBe('Mallory');
  });

  it('for the password is not good any more once the password is changed; an invitation is', async () => {
    const person = await somebody(fixture);
    const [shown, mailed] = [await make(person.email), await mailedTo(person)];
    const { team, keys } = await fixture.createTeam('team_owner');
    const asked = { team_id: team.id, email: person.email, name: 'Ada', role: 'member' } as const;
    const { invitation } = await fixture.call(keys[0] ?? '', members.add, asked);
    const change = { current: password, new: 'another good phrase' };
    await fixture.ask(passwords.change, change, await contextOf(fixture, await logIn(fixture, person)));
    for (const token of [shown, mailed]) expect((await errorOf(use(token))).code).toBe('unauthenticated');
    expect(await use(tokenIn(invitation?.url ?? ''))).toEqual({ email: person.email });
  });

  it('leaves second factors as they are, unless the operator says that they are lost', async () => {
    const person = await somebody(fixture);
    const factors = async () => (await logIn(fixture, person)).user.second_factor?.passkeys;
    await fixture.query(
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
       VALUES (gen_random_uuid(), $1, 'lost', '', 0, '{}', 'Lost')`,
      [person.userId],
    );
    await use(await make(person.email), password);
    expect(await factors()).toBe(1);
    const { url } = await fixture.call(fixture.admin, links.create, {
      email: person.email,
      remove_second_factors: true,
    });
    expect(await factors()).toBe(1);
    await use(tokenIn(url), password);
    expect(await factors()).toBe(0);
  });

  it('is used once, of many who use it at once', async () => {
    const token = await make((await somebody(fixture)).email);
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => use(token)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await errorOf(use(token))).code).toBe('unauthenticated');
  });

  it('is checked without being used, by no other statement than that with which its use begins', async () => {
    const { email } = await somebody(fixture);
    const check = (link: string) => fixture.ask(links.check, { token: link }, gateway);
    const token = await make(email);
    for (const _time of [1, 2]) expect(await check(token)).toEqual({});
    const checked = await fixture.statementsOf(() => check(token));
    const used = await fixture.statementsOf(() => use(token, 'Password1234!'));
    expect([checked.length, checked]).toEqual([1, used.slice(0, 1)]);
    await use(token);
    for (const dead of [token, `${token}x`, 'nonsense']) {
      const refusals = [await errorOf(check(dead)), await errorOf(use(dead))];
      expect(refusals[0]).toMatchObject({ code: 'unauthenticated', message: refusals[1]?.message });
    }
  });

  it('is replaced by the next one, ends after 24 hours, and with the address it was made for', async () => {
    const { email } = await somebody(fixture);
    const [first, second] = [await make(email), await make(email)];
    expect((await errorOf(use(first))).code).toBe('unauthenticated');
    await fixture.query(`UPDATE one_time_link SET expires_at = now() - interval '1 millisecond' WHERE email = $1`, [
      email,
    ]);
    expect((await errorOf(use(second))).code).toBe('unauthenticated');
    const third = await make(email);
    await fixture.query(`UPDATE "user" SET email = 'moved-' || email WHERE email = $1`, [email]);
    expect((await errorOf(use(third))).code).toBe('unauthenticated');
  });

  it.each([
    ['short', 'password must be at least 12 characters long'],
    ['Password1234!', 'password must not be a common password, even with digits or symbols added at the end'],
    ['1qaz2wsx3edc', 'password must not be a common password, even with digits or symbols added at the end'],
  ])('refuses the password %j and can be used again', async (secret, message) => {
    const token = await make((await somebody(fixture)).email);
    const refused = await errorOf(use(token, secret));
    expect([refused.code, refused.details.errors?.[0]?.message]).toEqual(['invalid_input', message]);
    await use(token, password);
  });

  it('is made by the operator alone, for users who are', async () => {
    const { keys, emails } = await fixture.createTeam('team_owner');
    expect((await errorOf(fixture.call(keys[0] ?? '', links.create, { email: emails[0] ?? '' }))).code).toBe(
      'forbidden',
    );
    expect((await errorOf(make('nobody@example.com'))).code).toBe('not_found');
  });
});
