import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { links, members, passwords } from '@atoll/contracts/teams';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { contextOf, gateway, logIn, password, somebody, tokenIn } from '../sessions/session-fixture.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { LinkTokens } from '../tokens/link-tokens.js';
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

describe('a password that is changed', () => {
  it('takes along mail with a link for it that was asked for and not sent, also one whose link is being made', async () => {
    const [person, other] = [await somebody(fixture), await somebody(fixture)];
    const context = await contextOf(fixture, await logIn(fixture, person));
    const ask = (email: string) =>
      fixture.query<{ id: string }>(
        `INSERT INTO mail (id, kind, address, data, due_at) VALUES (gen_random_uuid(), 'reset', $1, '{}', now()) RETURNING id`,
        [email],
      );
    for (const { email } of [person, other]) await ask(email);
    const [claimed] = await ask(person.email);
    const url = await inTransactionBeside(fixture.get(DataSource), async (claiming) => {
      await claiming.query('SELECT FROM mail WHERE id = $1 FOR UPDATE', [claimed?.id]);
      const link = { userId: person.userId, email: person.email, isProof: true, replaces: 'none' } as const;
      const made = await fixture.get(LinkTokens).issue(claiming.manager, link);
      const changing = fixture.ask(passwords.change, { current: password, new: another }, context);
      await untilLockWaits(fixture, { text: 'DELETE FROM mail', unless: changing });
      await claiming.commitTransaction();
      await changing;
      return made.url;
    });
    const addresses = [person.email, other.email];
    const left = await fixture.query('SELECT address FROM mail WHERE address = ANY ($1)', [addresses]);
    expect(left).toEqual([{ address: other.email }]);
    expect((await errorOf(fixture.ask(links.check, { token: tokenIn(url) }, gateway))).code).toBe('unauthenticated');
  });

  it('and a link of the operator wait for each other, and both are done', async () => {
    const person = await somebody(fixture);
    const waited = await inTransactionBeside(fixture.get(DataSource), async (changing) => {
      await changing.query('SELECT FROM "user" WHERE id = $1 FOR NO KEY UPDATE', [person.userId]);
      const making = fixture.call(fixture.admin, links.create, { email: person.email });
      const waits = await untilLockWaits(fixture, { text: 'FOR NO KEY UPDATE', unless: making });
      await changing.commitTransaction();
      await making;
      return waits;
    });
    expect(waited).toHaveLength(1);
  });
});
