import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createApiKey } from '@atoll/api-keys';
import { clusters, type Cluster } from '@atoll/contracts/gpuaas';
import { credentials, teams, users, type Credential, type User } from '@atoll/contracts/teams';
import { startGateway, type CallOptions, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const userId = '01890000-0000-7000-8000-00000000000b';
const aCredential: Credential = {
  key_id: '01890000-0000-7000-8000-00000000000a',
  user_id: userId,
  scope: 'user',
  platform_admin: false,
  timezone: 'UTC',
  teams: [],
  expiry_date: null,
  ip_whitelist: '',
};

let gateway: GatewayUnderTest;
let key: string;
beforeAll(async () => {
  gateway = await startGateway({ deadlineMs: 1_234 });
  key = gateway.services.key({
    timezone: 'Asia/Kathmandu',
    teams: [{ team_id: teamId, role: 'viewer' }],
    platform_admin: true,
  });
  gateway.services.answer(teams.create, () => aTeam());
  gateway.services.answer(teams.get, () => aTeam());
  gateway.services.answer(clusters.check, () => ({}) as Cluster);
  gateway.services.answer(users.issueKey, () => ({
    api_key: 'x',
    api_token: true,
    expiry_date: null,
    ip_whitelist: '',
  }));
});
afterAll(() => gateway.close());

async function contextOf(options: CallOptions, method = 'GET', url = `/api/team/${teamId}`) {
  await gateway.call(method, url, { key, ...options });
  return gateway.services.contextOf(method === 'GET' ? teams.get : teams.create);
}

describe('what goes with a call over the bus', () => {
  it('is the caller as the teams service knows them, and a deadline', async () => {
    const before = Date.now();
    const context = await contextOf({});
    expect(context.caller).toEqual({
      kind: 'user',
      userId,
      credential: { kind: 'key', id: '01890000-0000-7000-8000-00000000000a' },
      scope: 'user',
      platformAdmin: true,
      timezone: 'Asia/Kathmandu',
      teams: [{ teamId, role: 'viewer' }],
    });
    expect(context.deadlineAtMs - 1_234).toBeGreaterThanOrEqual(before);
    expect(context.deadlineAtMs - 1_234).toBeLessThanOrEqual(Date.now());
    expect(context.idempotency).toBeUndefined();
  });

  it('is a deadline that begins with the request, not after the look-up of its key', async () => {
    const [deadlineMs, lookUpMs] = [300_000, 100_000];
    const slow = await startGateway({ deadlineMs });
    const real = performance.now.bind(performance);
    let aheadMs = 0;
    let calledAtMs = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => real() + aheadMs);
    slow.services.answer(credentials.verify, () => {
      aheadMs += lookUpMs;
      return aCredential;
    });
    slow.services.answer(users.profile, () => {
      calledAtMs = Date.now();
      return {} as User;
    });
    try {
      expect((await slow.call('GET', '/api/user/profile', { key: createApiKey() })).status).toBe(200);
    } finally {
      clock.mockRestore();
      await slow.close();
    }
    expect(slow.services.contextOf(users.profile).deadlineAtMs).toBeLessThanOrEqual(calledAtMs + deadlineMs - lookUpMs);
  });

  it('never makes a membership key a platform_admin', async () => {
    const membership = gateway.services.key({
      scope: 'membership',
      teams: [{ team_id: teamId, role: 'team_owner' }],
      platform_admin: true,
    });
    expect((await contextOf({ key: membership })).caller).toMatchObject({ scope: 'membership', platformAdmin: false });
  });

  it.each(['a', 'req-1.2_3', 'x'.repeat(128)])('is the request id %s, given back to the caller', async (id) => {
    const { headers } = await gateway.call('GET', `/api/team/${teamId}`, { key, headers: { 'x-request-id': id } });
    expect(headers['x-request-id']).toBe(id);
    expect(gateway.services.contextOf(teams.get).requestId).toBe(id);
  });

  it.each(['', 'x'.repeat(129), 'a b', 'a"b', '{"level":"fatal"}', 'é'])(
    'is an id of our own in place of %j',
    async (id) => {
      const { headers } = await gateway.call('GET', '/api/nowhere', { headers: { 'x-request-id': id } });
      expect(headers['x-request-id']).toMatch(uuid);
    },
  );

  it('is the trace context, where it has its form', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect((await contextOf({ headers: { traceparent } })).traceparent).toBe(traceparent);
    expect((await contextOf({ headers: { traceparent: '00-nonsense' } })).traceparent).toBeUndefined();
  });
});

describe('an Idempotency-Key', () => {
  const body = '{ "name": "x" }';
  const headers = { 'idempotency-key': 'a-key' };
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

  it('goes along with whose it is and what was sent', async () => {
    const { idempotency } = await contextOf({ headers, body }, 'POST', '/api/team');
    expect(idempotency).toEqual({
      key: 'a-key',
      scope: `user:${userId} team: POST /api/team`,
      fingerprint: sha256(body),
    });
  });

  it('belongs to the path, however that is spelt', async () => {
    for (const path of ['/api/team', '/api/%74eam', '/api/te%61m']) {
      expect((await contextOf({ headers, body }, 'POST', path)).idempotency?.scope).toBe(
        `user:${userId} team: POST /api/team`,
      );
    }
  });

  it('of a membership key belongs to its team', async () => {
    const membership = gateway.services.key({ scope: 'membership', teams: [{ team_id: teamId, role: 'team_owner' }] });
    const { idempotency } = await contextOf({ headers, body, key: membership }, 'POST', '/api/team');
    expect(idempotency?.scope).toBe(`user:${userId} team:${teamId} POST /api/team`);
  });

  it('is fingerprinted without a body too', async () => {
    await gateway.call('POST', '/api/user/api-key', { key, headers });
    expect(gateway.services.contextOf(users.issueKey).idempotency?.fingerprint).toBe(sha256(''));
  });

  it('means nothing on other methods', async () => {
    expect((await contextOf({ headers })).idempotency).toBeUndefined();
  });

  it.each(['a-key', 'a key'])('in the form %j is ignored where no answer is kept', async (value) => {
    const answer = await gateway.call('POST', '/api/gpuaas/1/cluster/check', {
      key,
      headers: { 'idempotency-key': value },
    });
    expect([answer.status, answer.body]).toEqual([200, {}]);
    expect(gateway.services.contextOf(clusters.check).idempotency).toBeUndefined();
  });

  it.each(['', 'x'.repeat(256), 'a key', 'ключ', '\u007f'])('of the form %j is a 400 that names it', async (value) => {
    const answer = await gateway.call('POST', '/api/team', { key, body, headers: { 'idempotency-key': value } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors?.map(({ path }) => path)).toEqual(['Idempotency-Key']);
  });
});
