import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { passkeys } from '@atoll/contracts/teams';
import { contextOf, gateway, home, logIn, somebody } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';
import { relyingPartyOf } from './relying-party.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const codeOf = async (call: Promise<unknown>): Promise<string> => (await errorOf(call)).code;

describe('a passkey', () => {
  it('is asked for with what the authenticator needs: whose, for which host, with user verification, and a key that browsers make', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const { code, details } = await errorOf(fixture.ask(passkeys.begin, { name: 'x'.repeat(101) }, context));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'name']);
    const { options } = await fixture.ask(passkeys.begin, { name: 'Laptop' }, context);
    expect(JSON.parse(options)).toMatchObject({
      rp: { id: 'localhost', name: 'Atoll' },
      user: { name: person.email },
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ alg, type: 'public-key' })),
    });
    const logInOptions = JSON.parse((await fixture.ask(passkeys.beginLogIn, {}, gateway)).options) as object;
    expect(logInOptions).toMatchObject({ rpId: 'localhost', userVerification: 'required' });
    expect(logInOptions).not.toHaveProperty('allowCredentials.0');
  });

  it.each([
    '{',
    'null',
    '{}',
    '{"id":7,"response":{}}',
    String.raw`{"id":"\u0000"}`,
    '{"id":{"toString":null}}',
    '{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"clientDataJSON":"e30"}}',
  ])('that no authenticator made is refused, and uses its challenge up: %s', async (credential) => {
    const context = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    const { challenge_id } = await fixture.ask(passkeys.begin, {}, context);
    const finish = () => fixture.ask(passkeys.finish, { challenge_id, credential, name: 'x' }, context);
    const { code, details } = await errorOf(finish());
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'credential']);
    expect(await errorOf(finish())).toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/already answered/),
    });
    const begun = await fixture.ask(passkeys.beginLogIn, {}, gateway);
    expect(
      await codeOf(fixture.ask(passkeys.logIn, { challenge_id: begun.challenge_id, credential, ...home }, gateway)),
    ).toBe('unauthenticated');
  });

  it('takes a challenge of its own user, and of its own purpose', async () => {
    const [one, other] = [
      await contextOf(fixture, await logIn(fixture, await somebody(fixture))),
      await contextOf(fixture, await logIn(fixture, await somebody(fixture))),
    ];
    const { challenge_id } = await fixture.ask(passkeys.begin, {}, one);
    const finish = (context: typeof one) =>
      fixture.ask(passkeys.finish, { challenge_id, credential: '{}', name: 'x' }, context);
    expect((await errorOf(finish(other))).message).toMatch(/Start again/);
    expect(
      (await errorOf(fixture.ask(passkeys.logIn, { challenge_id, credential: '{}', ...home }, gateway))).message,
    ).toMatch(/Start again/);
    expect(await codeOf(finish(one))).toBe('invalid_input');
  });

  it('of another user is not there, and a membership key sees none', async () => {
    const context = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    const theirs = await somebody(fixture);
    await fixture.query(
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
       VALUES ('01890000-0000-7000-8000-0000000000cc', $1, 'theirs', '', 0, '{}', 'Theirs')`,
      [theirs.userId],
    );
    for (const id of ['01890000-0000-7000-8000-0000000000cc', unknownId]) {
      expect(await codeOf(fixture.ask(passkeys.remove, { id }, context))).toBe('not_found');
    }
    expect(await fixture.ask(passkeys.list, {}, context)).toEqual({ data: [] });
    const [key = ''] = (await fixture.createTeam('team_owner')).keys;
    expect(await codeOf(fixture.call(key, passkeys.list, {}))).toBe('forbidden');
  });
});

it.each([
  ['https://atoll.example.com', 'atoll.example.com'],
  ['http://localhost:3000', 'localhost'],
  ['http://atoll.example.com', undefined],
  ['http://127.0.0.1:3000', undefined],
  ['https://[::1]:3000', undefined],
])('a platform at %s has passkeys for %s', (url, id) => {
  expect(relyingPartyOf(url)?.id).toBe(id);
});
