import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CallContext } from '@atoll/contracts';
import { passkeys, secondFactors, sessions, users } from '@atoll/contracts/teams';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { MailServer } from '../mail/mail-server-fixture.js';
import { contextOf, gateway, logIn, somebody } from '../sessions/session-fixture.js';
import { SessionsService } from '../sessions/session.service.js';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { addPasskey, anAuthenticator, Authenticator, logInBy, publicUrl } from './authenticator-fixture.js';

let server: MailServer;
let fixture: TeamsFixture;
beforeAll(async () => {
  server = await MailServer.start();
  fixture = await TeamsFixture.start({ smtpUrl: server.url, publicUrl });
});
afterAll(async () => {
  await fixture.stop();
  await server.stop();
});

const add = (context: CallContext, authenticator: Authenticator) => addPasskey(fixture, context, authenticator);

describe('a passkey of an authenticator', () => {
  it('is added, and its user is told by mail', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const added = await add(context, anAuthenticator());
    expect(await fixture.ask(passkeys.list, {}, context)).toEqual({
      data: [expect.objectContaining({ id: added.id, name: 'Laptop' })],
    });
    const texts = (await server.to(person.email, 3)).map(({ text }) => text).join('\n');
    expect(texts).toContain('A passkey or an authenticator was added to your account');
  });

  it.each([[['\0']], [[['a', 'b'], ['c']]], [5], [null]])(
    'is added whatever is said of its transports: %j',
    async (transports) => {
      const context = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
      const authenticator = anAuthenticator();
      const { challenge_id, options } = await fixture.ask(passkeys.begin, {}, context);
      const credential = authenticator.register(options, transports);
      await fixture.ask(passkeys.finish, { challenge_id, credential, name: 'Laptop' }, context);
      await logInBy(fixture, authenticator);
    },
  );

  it('is one of twenty at most, however many were begun before', async () => {
    const person = await somebody(fixture);
    const context = await contextOf(fixture, await logIn(fixture, person));
    const begun = [await fixture.ask(passkeys.begin, {}, context), await fixture.ask(passkeys.begin, {}, context)];
    await fixture.query(
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name)
       SELECT gen_random_uuid(), $1, 'known ' || $1::uuid || number, '', 0, '{}', 'Known' FROM generate_series(1, 19) number`,
      [person.userId],
    );
    await fixture.query('UPDATE session SET has_second_factor = true WHERE user_id = $1', [person.userId]);
    const [first, second] = begun.map(({ challenge_id, options }) =>
      fixture.ask(
        passkeys.finish,
        { challenge_id, credential: anAuthenticator().register(options), name: 'Phone' },
        context,
      ),
    );
    const ends = await Promise.allSettled([first, second]);
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect((await fixture.ask(passkeys.list, {}, context)).data).toHaveLength(20);
  });

  it('logs its own user in, with both factors', async () => {
    const person = await somebody(fixture);
    const authenticator = anAuthenticator();
    await add(await contextOf(fixture, await logIn(fixture, person)), authenticator);
    const { session_id } = await logInBy(fixture, authenticator);
    expect(await fixture.ask(sessions.verify, { id: session_id }, gateway)).toMatchObject({ user_id: person.userId });
    const [session] = await fixture.query('SELECT has_second_factor FROM session WHERE id = $1', [session_id]);
    expect(session).toEqual({ has_second_factor: true });
  });

  it('is joined by another, or removed, by a log-in with it alone: a password is not enough', async () => {
    const person = await somebody(fixture);
    const authenticator = anAuthenticator();
    const { id } = await add(await contextOf(fixture, await logIn(fixture, person)), authenticator);
    const byPassword = await contextOf(fixture, await logIn(fixture, person));
    const attempts = [
      (context: typeof byPassword) => add(context, anAuthenticator()),
      (context: typeof byPassword) => fixture.ask(secondFactors.begin, {}, context),
      (context: typeof byPassword) => fixture.ask(users.issueKey, {}, context),
      (context: typeof byPassword) => fixture.ask(passkeys.remove, { id }, context),
    ];
    for (const attempt of attempts) {
      const { code, message } = await errorOf(attempt(byPassword));
      expect([code, message]).toEqual([
        'forbidden',
        'This needs a log-in with your second factor. Log in again, with it.',
      ]);
    }
    const byPasskey = await contextOf(fixture, await logInBy(fixture, authenticator));
    for (const attempt of attempts) await attempt(byPasskey);
  });

  it('that is removed while it logs in opens no session', async () => {
    const authenticator = anAuthenticator();
    const { id } = await add(await contextOf(fixture, await logIn(fixture, await somebody(fixture))), authenticator);
    const service = fixture.get(SessionsService);
    const open = service.open.bind(service);
    const spy = jest.spyOn(service, 'open').mockImplementationOnce((...asked) =>
      inTransactionBeside(fixture.get(DataSource), async (other) => {
        await other.query('DELETE FROM passkey WHERE id = $1', [id]);
        const opening = open(...asked);
        await untilLockWaits(fixture, { text: 'FROM passkey', unless: opening });
        await other.commitTransaction();
        return opening;
      }),
    );
    expect((await errorOf(logInBy(fixture, authenticator))).code).toBe('unauthenticated');
    expect(spy).toHaveBeenCalledTimes(1);
    spy.mockRestore();
  });

  it('of a counter that goes back, as a copy has it, logs nobody in', async () => {
    const authenticator = anAuthenticator();
    await add(await contextOf(fixture, await logIn(fixture, await somebody(fixture))), authenticator);
    await logInBy(fixture, authenticator);
    authenticator.counter = 1;
    expect((await errorOf(logInBy(fixture, authenticator))).message).toBe('The passkey is not valid here.');
  });

  it('is added once, and logs nobody in before that or for another origin', async () => {
    const context = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
    const authenticator = anAuthenticator();
    expect((await errorOf(logInBy(fixture, authenticator))).code).toBe('unauthenticated');
    await add(context, authenticator);
    expect((await errorOf(add(context, authenticator))).code).toBe('conflict');
    const elsewhere = new Authenticator('atoll.example.com', 'https://evil.example.com');
    const { code, details } = await errorOf(add(context, elsewhere));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'credential']);
  });
});
