import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { links, members, passwords } from '@atoll/contracts/teams';
import { contextOf, gateway, logIn, password, somebody, tokenIn } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { PasswordHashes } from './password-hashes.service.js';

const another = 'another good phrase';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

const use = (url: string, secret: string) => fixture.ask(links.use, { token: tokenIn(url), password: secret }, gateway);

/** By a link that the operator makes for the user. */
async function setPassword(email: string, secret = another): Promise<void> {
  await use((await fixture.call(fixture.admin, links.create, { email })).url, secret);
}

/** While the next password is looked at, or the next one is hashed, this happens. */
function meanwhile(method: 'matches' | 'hash', other: () => Promise<unknown>): void {
  const hashes = fixture.get(PasswordHashes);
  const original = hashes[method].bind(hashes) as (...given: unknown[]) => Promise<never>;
  jest.spyOn(hashes, method).mockImplementationOnce(async (...given: unknown[]) => {
    const result = await original(...given);
    await other();
    return result;
  });
}

describe('a password that is set while another request works with the one before', () => {
  it('ends the session of whoever logs in with the one before', async () => {
    const person = await somebody(fixture);
    meanwhile('matches', () => setPassword(person.email));
    expect((await errorOf(logIn(fixture, person))).code).toBe('unauthenticated');
    expect(await fixture.query('SELECT FROM session WHERE user_id = $1 AND ended_at IS NULL', [person.userId])).toEqual(
      [],
    );
    await logIn(fixture, person, undefined, another);
  });

  it('is not replaced by whoever changes the one before', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    // The session is that of another browser, which lives on.
    meanwhile('matches', async () => {
      await setPassword(person.email);
      await fixture.query('UPDATE session SET ended_at = NULL WHERE id = $1', [context.caller.credential.id]);
    });
    const change = fixture.ask(passwords.change, { current: password, new: 'chosen by a thief' }, context);
    expect((await errorOf(change)).code).toBe('forbidden');
    await logIn(fixture, person, undefined, another);
  });

  it('is not replaced by an invitation whose link somebody else was shown', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const email = `${randomUUID()}@example.com`;
    const asked = { team_id: team.id, email, name: 'Ada', role: 'member' } as const;
    const { invitation } = await fixture.call(keys[0] ?? '', members.add, asked);
    meanwhile('hash', () => setPassword(email));
    expect((await errorOf(use(invitation?.url ?? '', 'chosen by a thief'))).code).toBe('forbidden');
    const session = await logIn(fixture, { email }, undefined, another);
    expect((await contextOf(fixture, session)).caller.scope).toBe('user');
  });

  it('accepts no invitation, which takes the password that there is now', async () => {
    const { team, keys } = await fixture.createTeam('team_owner');
    const { email } = await somebody(fixture);
    const asked = { team_id: team.id, email, name: 'Ada', role: 'member' } as const;
    const { invitation, user_id } = await fixture.call(keys[0] ?? '', members.add, asked);
    const standing = () =>
      fixture.query('SELECT status FROM membership WHERE team_id = $1 AND user_id = $2', [team.id, user_id]);
    meanwhile('matches', () => setPassword(email));
    expect((await errorOf(use(invitation?.url ?? '', password))).code).toBe('unauthenticated');
    expect(await standing()).toEqual([{ status: 'invited' }]);
    await use(invitation?.url ?? '', another);
    expect(await standing()).toEqual([{ status: 'active' }]);
  });
});
