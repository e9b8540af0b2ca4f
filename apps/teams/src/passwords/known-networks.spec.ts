import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { links, passwords, secondFactors } from '@atoll/contracts/teams';
import { Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Secret, TOTP } from 'otpauth';
import {
  contextOf,
  elsewhere,
  gateway,
  home,
  logIn,
  password,
  somebody,
  squat,
  tokenIn,
  type Person,
} from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { PasswordHashes } from './password-hashes.service.js';

const another = 'another good phrase';
const thirdPlace = { address: '192.0.2.3', network: '192.0.2.3', device: 'a third browser' };

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ logInTries: '2/600' });
});
afterAll(() => fixture.stop());

const networksOf = async ({ userId }: Pick<Person, 'userId'>): Promise<string[]> =>
  (
    await fixture.query<{ network: string }>('SELECT network FROM log_in_network WHERE user_id = $1 ORDER BY 1', [
      userId,
    ])
  ).map(({ network }) => network);

/** By a link of the operator, opened there. */
async function reset(email: string, { network }: { network?: string }): Promise<void> {
  const { url } = await fixture.call(fixture.admin, links.create, { email });
  await fixture.ask(
    links.use,
    { token: tokenIn(url), password: another, ...(network !== undefined && { network }) },
    gateway,
  );
}

/** A user who has logged in at home and, perhaps by the hand of somebody else, elsewhere. */
async function knownInTwo(): Promise<Person> {
  const person = await somebody(fixture);
  for (const from of [elsewhere, home]) await logIn(fixture, person, from);
  return person;
}

/** More often than there are tries. */
async function failing(at: object, method: string, attempt: () => Promise<unknown>): Promise<void> {
  const failure = new AppError('unavailable', 'Too much waits.');
  const spy = jest.spyOn(at as Record<string, () => Promise<never>>, method).mockRejectedValue(failure);
  try {
    for (let tries = 0; tries < 3; tries += 1) expect((await errorOf(attempt())).code).toBe('unavailable');
  } finally {
    spy.mockRestore();
  }
}

describe('the networks that are known of a user', () => {
  it('end with a password that is set by a link, but for the one from which it was set', async () => {
    const person = await knownInTwo();
    await reset(person.email, home);
    expect(await networksOf(person)).toEqual([home.network]);
    // What others use up keeps out whoever comes from elsewhere, and nobody who comes from there.
    for (let tries = 0; tries < 2; tries += 1) await errorOf(logIn(fixture, person, thirdPlace, 'a guess of somebody'));
    expect((await errorOf(logIn(fixture, person, elsewhere, another))).code).toBe('too_many_requests');
    await logIn(fixture, person, home, another);
  });

  it('are of that user alone: a guess from where somebody else has logged in counts among all others', async () => {
    const [person, guesser] = [await somebody(fixture), await somebody(fixture)];
    await logIn(fixture, guesser, thirdPlace);
    for (let tries = 0; tries < 2; tries += 1) await errorOf(logIn(fixture, person, elsewhere, 'a guess of somebody'));
    expect((await errorOf(logIn(fixture, person, thirdPlace))).code).toBe('too_many_requests');
  });

  it('end with it, all of them, where nobody says from where it was set', async () => {
    const person = await knownInTwo();
    await reset(person.email, {});
    expect(await networksOf(person)).toEqual([]);
  });

  it('begin with the one from which a new password was set', async () => {
    const person = await knownInTwo();
    await reset(person.email, thirdPlace);
    expect(await networksOf(person)).toEqual([thirdPlace.network]);
  });

  it('end with a password that is changed, but for that of the session that changes it', async () => {
    const person = await knownInTwo();
    const context = await contextOf(fixture, await logIn(fixture, person, home));
    await fixture.ask(passwords.change, { current: password, new: another }, context);
    expect(await networksOf(person)).toEqual([home.network]);
  });

  it('end with an account that somebody else has made for an address', async () => {
    const { email } = { email: 'squatted@example.com' };
    const userId = await squat(fixture, email, 'of somebody else');
    await logIn(fixture, { email }, elsewhere, 'of somebody else');
    await reset(email, home);
    expect(await networksOf({ userId })).toEqual([home.network]);
  });
});

describe('wrong codes of an authenticator', () => {
  /** A user who has added one at home, having logged in elsewhere before. */
  async function withFactor(): Promise<{ person: Person; codes: string[] }> {
    const person = await knownInTwo();
    const context = await contextOf(fixture, await logIn(fixture, person, home));
    const { secret } = await fixture.ask(secondFactors.begin, {}, context);
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    const { recovery_codes: codes } = await fixture.ask(secondFactors.confirm, { code }, context);
    return { person, codes };
  }

  const second = async (person: Person, from: typeof home, code: string, secret = password) => {
    const { details } = await errorOf(logIn(fixture, person, from, secret));
    const ticket = details.secondFactor?.ticket ?? '';
    return fixture.ask(secondFactors.logIn, { ticket, code, ...from }, gateway);
  };
  const guess = async (person: Person, from: typeof home, secret = password) =>
    (await errorOf(second(person, from, '000000', secret))).code;
  const used = ['unauthenticated', 'unauthenticated', 'too_many_requests'];

  it('from where the user has not logged in keep nobody out where the user has, nor a user who is logged in', async () => {
    const { person, codes } = await withFactor();
    const [one = '', other = '', last = ''] = codes;
    for (const code of used) expect(await guess(person, thirdPlace)).toBe(code);
    const opened = await second(person, home, one);
    expect((await errorOf(second(person, elsewhere, other))).code).toBe('too_many_requests');
    const removed = fixture.ask(secondFactors.remove, { code: last }, await contextOf(fixture, opened));
    expect(await removed).toEqual({});
  });

  it('count together, from all networks that the password alone, or a link for another one, has made known', async () => {
    const { person } = await withFactor();
    expect(await guess(person, elsewhere)).toBe('unauthenticated');
    await reset(person.email, thirdPlace);
    expect(await networksOf(person)).toEqual([thirdPlace.network]);
    expect(await guess(person, thirdPlace, another)).toBe('unauthenticated');
    for (const from of [thirdPlace, elsewhere, home])
      expect(await guess(person, from, another)).toBe('too_many_requests');
  });

  it('are what counts, and not codes that were not compared', async () => {
    const { person, codes } = await withFactor();
    await failing(fixture.get(Transactions), 'run', () => second(person, home, codes[0] ?? ''));
    await second(person, home, codes[0] ?? '');
  });

  it('count by themselves where the user has logged in with a code', async () => {
    const { person, codes } = await withFactor();
    await second(person, elsewhere, codes[0] ?? '');
    for (const code of used) expect(await guess(person, thirdPlace)).toBe(code);
    for (const code of used) expect(await guess(person, elsewhere)).toBe(code);
    await second(person, home, codes[1] ?? '');
  });
});

describe('the tries of a user', () => {
  it('are there again at once, and as many as before, where the clock of the database was set back', async () => {
    const person = await knownInTwo();
    const codeOf = async (secret: string) => (await errorOf(logIn(fixture, person, home, secret))).code;
    const useUp = async () => [await codeOf('a guess'), await codeOf('a guess'), await codeOf(password)];
    expect(await useUp()).toEqual(['unauthenticated', 'unauthenticated', 'too_many_requests']);
    await fixture.query(`UPDATE log_in_bucket SET full_at = full_at + interval '1 day'`);
    await logIn(fixture, person, home);
    expect(await useUp()).toEqual(['unauthenticated', 'unauthenticated', 'too_many_requests']);
  });

  it('are not used up by right passwords, however many are checked at once', async () => {
    const person = await knownInTwo();
    // As if other log-ins were being checked before these.
    const comparing = jest.spyOn(fixture.get(PasswordHashes), 'matches').mockImplementation(() => delay(20, true));
    try {
      await Promise.all(Array.from({ length: 8 }, () => logIn(fixture, person, home)));
    } finally {
      comparing.mockRestore();
    }
    const guesses = Array.from({ length: 8 }, () => errorOf(logIn(fixture, person, home, 'a guess')));
    const codes = (await Promise.all(guesses)).map(({ code }) => code);
    expect(codes.filter((code) => code === 'unauthenticated')).toHaveLength(2);
    expect(new Set(codes)).toEqual(new Set(['unauthenticated', 'too_many_requests']));
  });

  it('are not kept waiting by those of somebody from another network', async () => {
    const person = await knownInTwo();
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
    const comparing = jest.spyOn(fixture.get(PasswordHashes), 'matches').mockImplementationOnce(() => {
      begun.resolve();
      return end.promise;
    });
    const guess = errorOf(logIn(fixture, person, thirdPlace, 'a guess'));
    await begun.promise;
    await logIn(fixture, person, home);
    end.resolve(false);
    expect((await guess).code).toBe('unauthenticated');
    comparing.mockRestore();
  });

  it('are not used up where no password was compared', async () => {
    const person = await knownInTwo();
    await failing(fixture.get(PasswordHashes), 'matches', () => logIn(fixture, person, home));
    await logIn(fixture, person, home);
  });
});
