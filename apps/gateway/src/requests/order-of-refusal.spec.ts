import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { notFound } from '@atoll/contracts';
import { teams } from '@atoll/contracts/teams';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { teamId } from '../testing/team-fixture.js';

/** Each request has every fault from its row downwards. */
const everyPath: [string, string, string][] = [
  ['a known path', 'GET', `/api/team/${teamId}?unknown=1`],
  ['a known path with a bad body', 'POST', '/api/team'],
  ['an unknown path', 'GET', '/api/nowhere'],
  ['an unknown path with a body', 'POST', '/api/nowhere'],
  ['the prefix itself', 'GET', '/api'],
  ['a known path under a wrong method', 'PATCH', '/api/team'],
  ['a removed path', 'GET', '/api/gpuaas/7/connection-info'],
  ['a removed path that a route would take', 'GET', '/api/gpuaas/node/connection-info'],
  ['a malformed path', 'GET', '/api/team/%zz'],
  ['a malformed path of nothing', 'DELETE', '/api/%E0%A4%A'],
  ['a path that is too long', 'GET', `/api/team/${'x'.repeat(9000)}`],
  ['a path spelt otherwise', 'GET', `/%61pi/team/${teamId}`],
  ['an unknown path spelt otherwise', 'GET', '/%61pi/nowhere'],
  ['a malformed path spelt otherwise', 'GET', '/a%70i/%zz'],
];

let gateway: GatewayUnderTest;
let good: string;
let elsewhere: string;

beforeAll(async () => {
  gateway = await startGateway({ limits: { key: { count: 5, seconds: 60 }, anonymous: { count: 1000, seconds: 60 } } });
  gateway.services.answer(teams.get, () => {
    throw notFound('team');
  });
  good = gateway.services.key();
  elsewhere = gateway.services.key({ key_id: '01890000-0000-7000-8000-0000000000ee', ip_whitelist: '203.0.113.0/24' });
});
afterAll(() => gateway.close());

const brokenBody = { body: '{' };

describe('requests are refused in one order', () => {
  it.each(everyPath)('401 first, for %s', async (_name, method, url) => {
    const { status, body, headers } = await gateway.call(method, url, brokenBody);
    expect([status, body.code]).toEqual([401, 'unauthenticated']);
    expect(headers['www-authenticate']).toBe('Bearer');
  });

  it.each(everyPath)('then 403 for the address, for %s', async (_name, method, url) => {
    const { status, body } = await gateway.call(method, url, { ...brokenBody, key: elsewhere, from: '198.51.100.1' });
    expect([status, body.code]).toEqual([403, 'ip_not_allowed']);
  });

  it.each(everyPath)('then 429, for %s', async (_name, method, url) => {
    for (let count = 0; count < 5; count++) await gateway.call('GET', '/api/nowhere', { key: good });
    const { status, body } = await gateway.call(method, url, { ...brokenBody, key: good });
    expect([status, body.code]).toEqual([429, 'too_many_requests']);
  });

  it('then the route, then the input, then the object', async () => {
    const refusals: [string, string, number][] = [
      ['POST', '/api/nowhere?page=1&page=2', 404],
      ['PATCH', '/api/team?page=1&page=2', 405],
      ['GET', '/api/gpuaas/7/connection-info?page=1&page=2', 410],
      ['GET', '/api/gpuaas/node/connection-info?page=1&page=2', 410],
      ['GET', '/api/team/%zz', 400],
      ['POST', '/api/team', 400],
    ];
    for (const [method, url, status] of refusals) {
      gateway.clock.nowMs += 60_000;
      expect((await gateway.call(method, url, { ...brokenBody, key: good })).status).toBe(status);
    }
    gateway.clock.nowMs += 60_000;
    expect((await gateway.call('GET', '/api/team/no-id', { key: good })).status).toBe(400);
    expect((await gateway.call('GET', `/api/team/${teamId}`, { key: good })).status).toBe(404);
  });

  it.each([
    ['POST', '/api/policy/image'],
    ['PUT', `/api/policy/image/${teamId}`],
  ] as const)('403 before up to a thousand objects are read: %s %s', async (method, url) => {
    gateway.clock.nowMs += 60_000;
    const { status, body } = await gateway.call(method, url, { ...brokenBody, key: good });
    expect([status, body.detail]).toEqual([403, 'Only a platform_admin may do this.']);
  });

  it('403 before a body is read, on a route that is only for the operator', async () => {
    const refused = [403, 'forbidden', 'Only a platform_admin may do this.'];
    const key = gateway.services.key({ key_id: '01890000-0000-7000-8000-0000000000ef' });
    const { status, body } = await gateway.call('POST', '/api/usage-events?page=1&page=2', { ...brokenBody, key });
    expect([status, body.code, body.detail]).toEqual(refused);
    await gateway.app.listen(0, '127.0.0.1');
    const { port } = gateway.app.getHttpServer().address() as AddressInfo;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': 700_000 };
    const withoutBody = request({ port, method: 'POST', path: '/api/usage-events', headers, agent: false });
    try {
      withoutBody.flushHeaders();
      const [incoming] = (await once(withoutBody, 'response')) as [IncomingMessage];
      expect(incoming.statusCode).toBe(403);
    } finally {
      withoutBody.on('error', () => undefined).destroy();
    }
  });

  it('outside /api nothing is asked of anybody', async () => {
    expect((await gateway.call('GET', '/nowhere')).status).toBe(404);
    expect((await gateway.call('GET', '/%zz')).status).toBe(400);
    expect((await gateway.call('POST', '/livez')).status).toBe(405);
  });
});
