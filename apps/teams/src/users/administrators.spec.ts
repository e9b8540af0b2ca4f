import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createApiKey, digestApiKey, isWellFormedApiKey } from '@atoll/api-keys';
import { links, teams, users } from '@atoll/contracts/teams';
import { Transactions } from '@atoll/database';
import { untilLockWaits, waitersForTurn } from '@atoll/testing';
import { Logger } from '@nestjs/common';
import { somebody } from '../sessions/session-fixture.js';
import { errorOf, operatorEmail, pepper, TeamsFixture } from '../teams-fixture.js';
import { DataSource } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { lockAdministrators, newAdminKey } from './admin-key.js';
import { Administrators } from './administrators.service.js';
import { PepperGuard } from './pepper-guard.js';

let fixture: TeamsFixture;
let administrators: Administrators;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
  administrators = fixture.app.get(Administrators);
});
afterAll(() => fixture.stop());

/** As on an empty database. */
async function forgetEverybody(): Promise<void> {
  await fixture.query('TRUNCATE "user" CASCADE');
}

describe('the first start', () => {
  it('makes the operator and a key that never expires, and returns it that once', async () => {
    await forgetEverybody();
    const first = await administrators.ensure({ email: 'Operator@Example.com' });
    expect(first).toEqual({ created: true, apiKey: expect.any(String), link: expect.stringContaining('/link#') });
    expect(isWellFormedApiKey(first.apiKey ?? '')).toBe(true);
    expect(await fixture.verify(first.apiKey ?? '')).toMatchObject({
      platform_admin: true,
      scope: 'user',
      expiry_date: null,
    });
    expect(await administrators.ensure({ email: 'operator@example.com' })).toEqual({ created: false });
    expect((await fixture.call(first.apiKey ?? '', users.profile, {})).email).toBe(operatorEmail);
  });

  it('returns a link until the operator has a password, whoever else has one, or a link', async () => {
    await forgetEverybody();
    const ensure = () => administrators.ensure({ email: operatorEmail, apiKey: fixture.admin });
    await ensure();
    await somebody(fixture);
    const { emails } = await fixture.createTeam('member');
    await fixture.call(fixture.admin, links.create, { email: emails[0] ?? '' });
    // As at a later start.
    await fixture.query(
      `UPDATE one_time_link SET created_at = now() - interval '2 minutes' WHERE user_id = (SELECT id FROM "user" WHERE platform_admin)`,
    );
    expect((await ensure()).link).toContain('/link#');
  });

  it('makes one operator, however many replicas start at once', async () => {
    await forgetEverybody();
    const ensured = await Promise.all(Array.from({ length: 5 }, () => administrators.ensure({ email: operatorEmail })));
    expect(ensured.filter(({ created }) => created)).toHaveLength(1);
    expect(ensured.filter(({ apiKey }) => apiKey)).toHaveLength(1);
  });

  it('waits for a replica that is making the operator just now', async () => {
    const ensure = () => administrators.ensure({ email: operatorEmail });
    expect(await waitersForTurn(fixture.get(DataSource), 'administrators', ensure)).toBe(1);
  });

  it('makes nothing where anything of it fails: a key that is kept has been returned', async () => {
    await forgetEverybody();
    await fixture.query('ALTER TABLE one_time_link RENAME TO hidden');
    try {
      await expect(administrators.ensure({ email: operatorEmail })).rejects.toThrow('one_time_link');
    } finally {
      await fixture.query('ALTER TABLE hidden RENAME TO one_time_link');
    }
    expect(await administrators.ensure({ email: operatorEmail })).toMatchObject({
      created: true,
      apiKey: expect.any(String),
    });
  });

  it('takes the key that the operator brings along, and does not return it', async () => {
    await forgetEverybody();
    const apiKey = createApiKey();
    expect(await administrators.ensure({ email: operatorEmail, apiKey })).toEqual({
      created: true,
      acceptsBrought: true,
      link: expect.stringContaining('/link#'),
    });
    expect(await fixture.verify(apiKey)).toMatchObject({ platform_admin: true });
  });

  it('refuses a key of somebody else', async () => {
    await forgetEverybody();
    const { apiKey = '' } = await administrators.ensure({ email: operatorEmail });
    const { members } = await fixture.call(apiKey, teams.create, { name: 'x' });
    await expect(administrators.ensure({ email: operatorEmail, apiKey: members[0]?.api_key ?? '' })).rejects.toThrow(
      'another user',
    );
  });
});

describe('a later start', () => {
  const operator = async () =>
    (await fixture.query<{ id: string }>('SELECT id FROM "user" WHERE platform_admin'))[0]?.id;
  const start = async () => (await administrators.ensure({ email: operatorEmail, apiKey: fixture.admin })).link;
  const anHourLater = () => fixture.query(`UPDATE one_time_link SET created_at = created_at - interval '1 hour'`);

  it.each([
    ['a password', `INSERT INTO password (user_id, hash) VALUES ($1, 'x')`],
    [
      'a passkey',
      `INSERT INTO passkey (id, user_id, credential_id, public_key, counter, transports, name) VALUES ($1, $1, 'x', 'x', 0, '{}', 'x')`,
    ],
    ['an identity of a provider', `INSERT INTO user_identity (issuer, subject, user_id) VALUES ('x', 'y', $1)`],
  ])('makes no link to log in where the operator has %s', async (_what, statement) => {
    await forgetEverybody();
    await start();
    await anHourLater();
    await fixture.query(statement, [await operator()]);
    expect(await start()).toBeUndefined();
  });

  it('makes a link whichever other one was made just now, as by who asked for a new password; of starts at once, one does', async () => {
    await forgetEverybody();
    await start();
    await anHourLater();
    await fixture.get(Transactions).run(async (manager) => {
      const link = { userId: (await operator()) ?? '', email: operatorEmail, isProof: true };
      await fixture.get(LinkTokens).issue(manager, { ...link, replaces: 'none' });
    });
    const made = await Promise.all([start(), start(), start()]);
    expect(made.filter((link) => link !== undefined)).toEqual([expect.stringContaining('/link#')]);
  });

  it('makes a link in place of the last, and leaves one that removes second factors good', async () => {
    await forgetEverybody();
    await start();
    await fixture.get(Transactions).run(async (manager) => {
      const link = { userId: (await operator()) ?? '', email: operatorEmail, isProof: true };
      await fixture.get(LinkTokens).issue(manager, { ...link, removesFactors: true });
    });
    await anHourLater();
    expect(await start()).toContain('/link#');
    await anHourLater();
    expect(await start()).toContain('/link#');
    const unused = 'SELECT removes_factors FROM one_time_link WHERE used_at IS NULL ORDER BY created_at';
    expect(await fixture.query(unused)).toEqual([{ removes_factors: true }, { removes_factors: false }]);
  });

  it('with another key replaces the earlier one and says so; a key that was revoked stays revoked', async () => {
    await forgetEverybody();
    const told: unknown[] = [];
    const spy = jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void told.push(line));
    const [first, second] = [createApiKey(), createApiKey()];
    const ensure = (apiKey: string) => administrators.ensure({ email: operatorEmail, apiKey });
    await ensure(first);
    expect(await ensure(first)).toEqual({ created: false, acceptsBrought: true });
    expect(told).toEqual([]);
    expect(await ensure(second)).toEqual({ created: false, acceptsBrought: true });
    expect(told.splice(0)).toEqual(["ATOLL_ADMIN_KEY is new: the operator's earlier keys are revoked"]);
    expect((await errorOf(fixture.verify(first))).code).toBe('unauthenticated');
    expect(await ensure(first)).toEqual({ created: false, acceptsBrought: false });
    expect(told).toEqual(['The key in ATOLL_ADMIN_KEY was revoked and is not accepted; remove it, or set another one']);
    spy.mockRestore();
    expect((await errorOf(fixture.verify(first))).code).toBe('unauthenticated');
    expect(await fixture.verify(second)).toMatchObject({ platform_admin: true });
  });
});

it('a new key for the operator, made at the machine, ends the earlier ones', async () => {
  const newKey = () => newAdminKey(fixture.get(DataSource), fixture.get(TeamsSettings));
  await forgetEverybody();
  await expect(newKey()).rejects.toThrow('start the platform once');
  const { apiKey: lost = '' } = await administrators.ensure({ email: operatorEmail });
  expect(await fixture.verify(await newKey())).toMatchObject({ platform_admin: true, expiry_date: null });
  expect((await errorOf(fixture.verify(lost))).code).toBe('unauthenticated');
});

it('a key is made at the machine under the pepper of the platform alone: under another one nothing ends', async () => {
  await administrators.ensure({ email: operatorEmail });
  const settings = fixture.get(TeamsSettings);
  const first = await newAdminKey(fixture.get(DataSource), settings);
  expect(await fixture.verify(first)).toMatchObject({ platform_admin: true });
  const other = Object.assign(new TeamsSettings(), settings, { keyPepper: 'the pepper of another platform' });
  await expect(newAdminKey(fixture.get(DataSource), other)).rejects.toThrow(/^nothing was changed: ATOLL_KEY_PEPPER/);
  expect(await fixture.verify(first)).toMatchObject({ platform_admin: true });
  await fixture.query('DELETE FROM key_pepper');
  expect(await fixture.verify(await newAdminKey(fixture.get(DataSource), settings))).toMatchObject({
    platform_admin: true,
  });
});

describe('a start under another pepper than that of the keys', () => {
  const start = (keyPepper: string) =>
    new PepperGuard(
      fixture.get(Transactions),
      Object.assign(new TeamsSettings(), fixture.get(TeamsSettings), { keyPepper }),
    ).onModuleInit();
  const other = 'the pepper of another platform';

  it('is refused, again and again, and changes nothing', async () => {
    await administrators.ensure({ email: operatorEmail });
    await start(pepper);
    for (let times = 0; times < 2; times += 1)
      await expect(start(other)).rejects.toThrow(
        "ATOLL_KEY_PEPPER is not the one under which this platform's API keys were made: none of them would work.",
      );
    await start(pepper);
    const key = await newAdminKey(fixture.get(DataSource), fixture.get(TeamsSettings));
    expect(await fixture.verify(key)).toMatchObject({ platform_admin: true });
  });

  it('is decided once whoever is making the first key has made it', async () => {
    const [locked, made] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const making = fixture.get(Transactions).run(async (manager) => {
      await lockAdministrators(manager);
      locked.resolve();
      await made.promise;
    });
    await locked.promise;
    const starting = start(pepper);
    expect(await untilLockWaits(fixture, { unless: starting })).toHaveLength(1);
    made.resolve();
    await Promise.all([making, starting]);
  });

  it('is accepted where no key was made yet', async () => {
    await forgetEverybody();
    await start(other);
    await start(pepper);
    await administrators.ensure({ email: operatorEmail });
    await expect(start(other)).rejects.toThrow('ATOLL_KEY_PEPPER');
  });

  it('is accepted once the operator, who has lost the earlier one, has made a key under it, and the earlier one is not', async () => {
    await administrators.ensure({ email: operatorEmail });
    const settings = (keyPepper: string) =>
      Object.assign(new TeamsSettings(), fixture.get(TeamsSettings), { keyPepper });
    const key = await newAdminKey(fixture.get(DataSource), settings(other), { isNewPepper: true });
    await start(other);
    await expect(start(pepper)).rejects.toThrow('ATOLL_KEY_PEPPER');
    expect(
      await fixture.query('SELECT FROM api_key WHERE digest = $1', [Buffer.from(digestApiKey(key, other), 'hex')]),
    ).toHaveLength(1);
    await newAdminKey(fixture.get(DataSource), settings(pepper), { isNewPepper: true });
    await start(pepper);
  });

  it('does not accept the key in ATOLL_ADMIN_KEY once the operator has replaced the pepper, and leaves the key of the operator valid', async () => {
    const adminKey = createApiKey();
    const renew = (keyPepper: string) => {
      const settings = Object.assign(new TeamsSettings(), fixture.get(TeamsSettings), { keyPepper, adminKey });
      return newAdminKey(fixture.get(DataSource), settings, { isNewPepper: true });
    };
    await administrators.ensure({ email: operatorEmail });
    await renew(other);
    // Twice, as by an operator who did not keep what the first printed.
    for (let times = 0; times < 2; times += 1) {
      const made = await renew(pepper);
      const { acceptsBrought } = await administrators.ensure({ email: operatorEmail, apiKey: adminKey });
      expect(acceptsBrought).toBe(false);
      expect(await fixture.verify(made)).toMatchObject({ platform_admin: true });
      expect((await errorOf(fixture.verify(adminKey))).code).toBe('unauthenticated');
    }
  });
});
