import { createHmac, generateKeyPairSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sessions, users, type User } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { timeoutFactor } from '@atoll/testing';
import { FakeSessions } from '../testing/access-token-fixture.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let gateway: GatewayUnderTest;
let fake: FakeSessions;
beforeEach(async () => {
  await gateway?.close();
  gateway = await startGateway();
  fake = new FakeSessions(gateway);
  gateway.services.answer(users.profile, () => ({}) as User);
});
afterAll(() => gateway.close());

const profile = (token: string) => gateway.call('GET', '/api/user/profile', { key: token });
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('an access token', () => {
  it('names the caller and the session, as a key does, and is verified without a call', async () => {
    const openedAt = '2026-11-26T10:00:00.000Z';
    const id = fake.open({
      opened_at: openedAt,
      teams: [{ team_id: id0, role: 'viewer' }],
      timezone: 'Asia/Kathmandu',
    });
    const token = await fake.token(id);
    for (let call = 0; call < 3; call++) expect((await profile(token)).status).toBe(200);
    expect(gateway.services.contextOf(users.profile).caller).toEqual({
      kind: 'user',
      userId: '01890000-0000-7000-8000-00000000000b',
      credential: { kind: 'session', id, openedAt },
      scope: 'user',
      platformAdmin: false,
      timezone: 'Asia/Kathmandu',
      teams: [{ teamId: id0, role: 'viewer' }],
    });
    expect(gateway.services.callsOf(sessions.keys)).toHaveLength(1);
    expect(gateway.services.callsOf(sessions.verify)).toHaveLength(1);
    expect(gateway.logged().at(-1)).toMatchObject({ session_id: id });
    expect(JSON.stringify(gateway.logged())).not.toContain(token.split('.')[2]);
  });

  it('opens what its session opens now: at once after a broadcast, after 5 s without', async () => {
    const id = fake.open();
    const token = await fake.token(id);
    await profile(token);
    fake.end(id);
    expect((await profile(token)).status).toBe(200);
    gateway.clock.nowMs += 5_000;
    expect((await profile(token)).body).toMatchObject({ status: 401, detail: 'The session has ended. Log in again.' });
    const other = fake.open();
    const another = await fake.token(other);
    await profile(another);
    fake.end(other);
    gateway.services.broadcastChange('01890000-0000-7000-8000-00000000000b');
    expect((await profile(another)).status).toBe(401);
    const asked = gateway.services.callsOf(sessions.verify).length;
    expect((await profile(another)).status).toBe(401);
    expect(gateway.services.callsOf(sessions.verify)).toHaveLength(asked);
  });

  it('is over at its end, also where it was verified before', async () => {
    const token = await fake.token(fake.open());
    expect((await profile(token)).status).toBe(200);
    gateway.clock.nowMs += 905_000;
    expect((await profile(token)).body).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  it('of a key that the teams service has no more is refused after half a minute, also where it was verified before', async () => {
    const id = fake.open();
    const [seen, unseen] = [await fake.token(id), await fake.token(id, { claims: { jti: 'another' } })];
    expect((await profile(seen)).status).toBe(200);
    const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    gateway.services.answer(sessions.keys, () => ({
      issuer: 'http://localhost:3000',
      audience: 'atoll',
      keys: [{ kid: 'next', x }],
    }));
    gateway.clock.nowMs += 30_000;
    for (const token of [seen, unseen])
      expect((await profile(token)).body).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(gateway.services.callsOf(sessions.keys)).toHaveLength(2);
  });

  it('is verified by keys that are asked for every half minute, and 503 where they cannot be had', async () => {
    const token = await fake.token(fake.open());
    for (let minute = 0; minute < 2; minute += 0.5) {
      for (let call = 0; call < 3; call += 1) expect((await profile(token)).status).toBe(200);
      gateway.clock.nowMs += 30_000;
    }
    expect(gateway.services.callsOf(sessions.keys)).toHaveLength(4);
    gateway.services.stop(sessions.keys);
    expect((await profile(token)).status).toBe(503);
  });

  it('that is known is not charged to an address that has failed too often, whenever its key is asked for again', async () => {
    await gateway.close();
    gateway = await startGateway({ limits: { authFailures: { count: 1, seconds: 3600 } } });
    fake = new FakeSessions(gateway);
    gateway.services.answer(users.profile, () => ({}) as User);
    const token = await fake.token(fake.open());
    expect((await profile(token)).status).toBe(200);
    const forged = await fake.token(fake.open(), { header: { kid: 'other' } });
    expect([(await profile(forged)).status, (await profile(forged)).status]).toEqual([401, 429]);
    gateway.clock.nowMs += 30_000;
    expect((await profile(token)).status).toBe(200);
  });

  it('is 503 while nobody can say whose it is', async () => {
    const token = await fake.token(fake.open());
    gateway.services.stop(sessions.keys);
    expect((await profile(token)).status).toBe(503);
    gateway.services.answer(sessions.keys, () => {
      throw new AppError('deadline_exceeded', 'late');
    });
    expect((await profile(token)).status).toBe(503);
  });

  it('is 503 once its look-ups, one behind the other, take longer than a request may', async () => {
    const deadlineMs = 1_000 * timeoutFactor;
    const slow = await startGateway({ deadlineMs });
    const sessionsOfSlow = new FakeSessions(slow);
    const token = await sessionsOfSlow.token(sessionsOfSlow.open());
    const order: string[] = [];
    const { promise: lookUpLate, resolve } = Promise.withResolvers<void>();
    const { x = '' } = sessionsOfSlow.key.publicKey.export({ format: 'jwk' });
    slow.services.answer(sessions.keys, async () => {
      await delay(deadlineMs / 2);
      return { issuer: 'http://localhost:3000', audience: 'atoll', keys: [{ kid: 'k', x }] };
    });
    slow.services.answer(sessions.verify, async (_input, { deadlineAtMs }) => {
      // Between the end of the request and that of this look-up; in two parts, so that a busy process, in which timers
      // are due together, answers in between.
      await delay(deadlineAtMs - Date.now() - (3 * deadlineMs) / 8);
      await delay(deadlineMs / 8);
      order.push('look-up');
      resolve();
      return new Promise<never>(() => undefined);
    });
    const answered = slow
      .call('GET', '/api/user/profile', { key: token })
      .then(({ status }) => order.push(`${status}`));
    await Promise.all([answered, lookUpLate]);
    await slow.close();
    // A silent look-up is made twice.
    expect(order.slice(0, 2)).toEqual(['503', 'look-up']);
  });

  it.each<[string, () => Promise<string>]>([
    [
      'of another installation',
      async () => fake.token(fake.open(), { key: generateKeyPairSync('ed25519').privateKey }),
    ],
    ['of another issuer', () => fake.token(fake.open(), { claims: { iss: 'https://elsewhere.example.com' } })],
    ['for another audience', () => fake.token(fake.open(), { claims: { aud: 'somebody' } })],
    ['that has expired', () => fake.token(fake.open(), { claims: { exp: gateway.clock.nowMs / 1000 - 6 } })],
    ['that is not valid yet', () => fake.token(fake.open(), { claims: { nbf: gateway.clock.nowMs / 1000 + 60 } })],
    ['without an end', () => fake.token(fake.open(), { claims: { exp: undefined } })],
    ['without a session', () => fake.token(fake.open(), { claims: { sid: undefined } })],
    ['with a session that is no id', () => fake.token(fake.open(), { claims: { sid: '../../x' } })],
    ['with a kid that nobody knows', () => fake.token(fake.open(), { header: { kid: 'other' } })],
    ['with a jku', () => fake.token(fake.open(), { header: { jku: 'http://127.0.0.1:9/keys' } })],
    [
      'with a key of its own',
      () => fake.token(fake.open(), { header: { jwk: fake.key.publicKey.export({ format: 'jwk' }) } }),
    ],
    ['of another type', () => fake.token(fake.open(), { header: { typ: 'JWT' } })],
  ])('%s is refused', async (_what, token) => {
    expect((await profile(await token())).body).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(gateway.services.callsOf(sessions.verify)).toHaveLength(0);
  });

  it('of no algorithm, or of a symmetric one under the public key, is refused', async () => {
    const claims = encoded({
      sid: fake.open(),
      iss: 'http://localhost:3000',
      aud: 'atoll',
      sub: 'x',
      nbf: 1,
      exp: 9_999_999_999,
    });
    const header = (alg: string) => encoded({ alg, kid: 'k', typ: 'at+jwt' });
    const secret = fake.key.publicKey.export({ format: 'der', type: 'spki' });
    const hmac = createHmac('sha256', secret)
      .update(`${header('HS256')}.${claims}`)
      .digest('base64url');
    for (const token of [
      `${header('none')}.${claims}.`,
      `${header('HS256')}.${claims}.${hmac}`,
      `${header('EdDSA')}.${claims}.`,
    ]) {
      expect((await profile(token)).status).toBe(401);
    }
  });

  it('that is forged costs its address a failure, and keys that nobody knows are fetched every 5 s at most', async () => {
    await gateway.close();
    gateway = await startGateway({ limits: { authFailures: { count: 3, seconds: 60 } } });
    fake = new FakeSessions(gateway);
    const forged = await fake.token(fake.open(), { header: { kid: 'other' } });
    const statuses = [];
    for (let call = 0; call < 4; call++) statuses.push((await profile(forged)).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
    expect(gateway.services.callsOf(sessions.keys)).toHaveLength(1);
  });

  it('beside a key is two credentials', async () => {
    const token = await fake.token(fake.open());
    const { status } = await gateway.call('GET', '/api/user/profile', {
      key: token,
      headers: { 'x-api-key': gateway.services.key() },
    });
    expect(status).toBe(401);
  });
});

const id0 = '01890000-0000-7000-8000-0000000000aa';
