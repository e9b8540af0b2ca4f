import { generateKeyPairSync } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { sessions } from '@atoll/contracts/teams';
import { Transactions } from '@atoll/database';
import { waitersForTurn } from '@atoll/testing';
import { decodeProtectedHeader } from 'jose';
import { DataSource } from 'typeorm';
import { TeamsFixture } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';
import { gateway, logIn, somebody } from './session-fixture.js';
import { SigningKeys } from './signing-keys.service.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

describe('the keys that sign', () => {
  it('are sealed in the database, and replaced after 30 days while tokens of the old one are still verified', async () => {
    const before = await logIn(fixture, await somebody(fixture));
    const { kid = '' } = decodeProtectedHeader(before.access_token);
    const [{ sealed } = { sealed: '' }] = await fixture.query<{ sealed: string }>(
      'SELECT sealed FROM signing_key WHERE kid = $1',
      [kid],
    );
    expect(sealed).toMatch(/^v1\.k1\./);
    await fixture.query(`UPDATE signing_key SET created_at = now() - interval '30 days 1 minute' WHERE kid = $1`, [
      kid,
    ]);
    const { keys } = await fixture.ask(sessions.keys, {}, gateway);
    expect(keys.map((key) => key.kid)).toEqual([expect.not.stringContaining(kid), kid]);
    const after = await logIn(fixture, await somebody(fixture));
    expect(decodeProtectedHeader(after.access_token).kid).toBe(keys[0]?.kid);
  });

  it('are one new one, however many sign when there is none', async () => {
    await fixture.query(`UPDATE signing_key SET created_at = now() - interval '31 days 1 minute'`);
    const replica = () =>
      new SigningKeys(fixture.get(DataSource), fixture.get(Transactions), fixture.get(TeamsSettings));
    const [one, other] = [replica(), replica()];
    const claims = { userId: 'ada', sessionId: 'session', lifeSeconds: 60 };
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => (at % 2 ? one : other).sign(claims)));
    expect(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size).toBe(1);
    expect(await fixture.query('SELECT FROM signing_key')).toHaveLength(1);
  });

  it('are not made while another replica makes one', async () => {
    await fixture.query(`UPDATE signing_key SET created_at = now() - interval '31 days 1 minute'`);
    const list = () => fixture.ask(sessions.keys, {}, gateway);
    expect(await waitersForTurn(fixture.get(DataSource), 'signing keys', list)).toBe(1);
  });

  it('are replaced where they cannot be opened any more', async () => {
    const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    await fixture.query(
      `INSERT INTO signing_key (kid, sealed, x, created_at) VALUES ('lost', 'v1.lost.AAAA', $1, now() + interval '1 minute')`,
      [x],
    );
    const { keys } = await fixture.ask(sessions.keys, {}, gateway);
    expect(keys.length).toBeGreaterThan(1);
    const session = await logIn(fixture, await somebody(fixture));
    expect(decodeProtectedHeader(session.access_token).kid).not.toBe('lost');
  });

  it('are no more what an operator removes: after 5 s each replica signs by another, also where the clock is set back', async () => {
    const replica = new SigningKeys(fixture.get(DataSource), fixture.get(Transactions), fixture.get(TeamsSettings));
    const claims = { userId: 'ada', sessionId: 'session', lifeSeconds: 60 };
    const kidNow = async () => decodeProtectedHeader(await replica.sign(claims)).kid ?? '';
    const removed = await kidNow();
    await fixture.query('DELETE FROM signing_key');
    expect((await fixture.ask(sessions.keys, {}, gateway)).keys.map(({ kid }) => kid)).toEqual([
      expect.not.stringContaining(removed),
    ]);
    const [startMs, sinceMs] = [Date.now(), performance.now()];
    jest.spyOn(performance, 'now').mockReturnValue(sinceMs + 5_000);
    jest.spyOn(Date, 'now').mockReturnValue(startMs - 3_600_000);
    expect(await kidNow()).not.toBe(removed);
  });
});
