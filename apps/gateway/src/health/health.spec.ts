import { connect, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { fingerprintOfPepper } from '@atoll/api-keys';
import { credentials, teams } from '@atoll/contracts/teams';
import { InProcessBus, NatsLink, RpcModule } from '@atoll/rpc';
import { version } from '@atoll/service';
import { expectErrors } from '@atoll/testing';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { FakeServices, pepper } from '../testing/services-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';

let gateway: GatewayUnderTest;
afterEach(() => gateway.close());

describe('health', () => {
  it('lives, and is ready while all that it needs is', async () => {
    const database = { reason: null as string | null };
    gateway = await startGateway({ readinessChecks: [{ name: 'database', check: () => database.reason }] });
    expect(await gateway.call('GET', '/livez')).toMatchObject({ status: 200, body: { status: 'live', version } });
    expect(await gateway.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } });
    database.reason = 'it does not answer';
    const { status, body, headers } = await gateway.call('GET', '/readyz');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(body).toMatchObject({
      code: 'unavailable',
      detail: 'Not ready: database: it does not answer.',
      reasons: [{ name: 'database', reason: 'it does not answer' }],
    });
    expect((await gateway.call('GET', '/livez')).status).toBe(200);
  });

  it('is not ready where the teams service has another pepper, and logs why; the pepper is in no call and no line', async () => {
    expectErrors(/ATOLL_KEY_PEPPER is not that of the teams service: this gateway refuses every API key\./);
    const bus = new InProcessBus();
    const services = new FakeServices(bus);
    services.answer(credentials.comparePepper, () => ({ is_same: false }));
    gateway = await startGateway({ rpc: RpcModule.forMemory({ bus }) });
    while (!gateway.logged().some(({ level }) => level === 'error'))
      await new Promise((resolve) => setImmediate(resolve));
    expect(await gateway.call('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { reasons: [{ name: 'key pepper', reason: 'ATOLL_KEY_PEPPER differs from that of teams' }] },
    });
    expect(services.callsOf(credentials.comparePepper)).toMatchObject([
      { input: { fingerprint: fingerprintOfPepper(pepper).toString('hex') } },
    ]);
    expect(JSON.stringify([services.calls, gateway.logged()])).not.toContain(pepper);
  });

  it('is not ready while the bus is away', async () => {
    const link = NatsLink.open({ servers: '127.0.0.1:9', startupWaitMs: 1 });
    gateway = await startGateway({ rpc: RpcModule.forNats({ link, secret: 'a secret for this spec' }) });
    const { status, body } = await gateway.call('GET', '/readyz');
    await link.close();
    expect([status, body.detail]).toEqual([503, 'Not ready: bus: NATS is not connected.']);
  });

  it('is not asked by those who send a body or a query', async () => {
    gateway = await startGateway();
    expect((await gateway.call('GET', '/livez?verbose')).status).toBe(400);
    expect((await gateway.call('DELETE', '/livez')).headers.allow).toBe('GET, HEAD');
  });
});

describe('what is kept of a request', () => {
  it('is one line: who, from where, what, how it went, and nothing secret', async () => {
    gateway = await startGateway({ trustedProxies: ['127.0.0.1'] });
    gateway.services.answer(teams.get, () => aTeam());
    const key = gateway.services.key();
    await gateway.call('GET', `/api/team/${teamId}?password=hunter2`, {
      key,
      headers: { 'x-request-id': 'one', cookie: 'session=hunter2' },
    });
    await gateway.call('POST', '/api/team', { key, body: { password: 'hunter2' }, headers: { 'x-request-id': 'two' } });
    const forwarded = { 'x-request-id': 'three', 'x-forwarded-for': '203.0.113.9' };
    await gateway.call('GET', `/api/team/${key}/%zz`, { headers: forwarded });
    await gateway.call('GET', '/api/team-billing/2026-10-01T00%3a00%3A00/x', { headers: { 'x-request-id': 'four' } });
    const lines = gateway.logged().filter(({ msg }) => msg === 'answered');
    const who = { user_id: '01890000-0000-7000-8000-00000000000b', key_id: '01890000-0000-7000-8000-00000000000a' };
    expect(lines).toMatchObject([
      {
        level: 'info',
        method: 'GET',
        route: '/api/team/:team_id',
        path: `/api/team/${teamId}`,
        status: 400,
        request_id: 'one',
        address: '127.0.0.1',
        ...who,
      },
      { level: 'info', method: 'POST', route: '/api/team', path: '/api/team', status: 400, request_id: 'two', ...who },
      {
        level: 'info',
        method: 'GET',
        route: 'none',
        path: '/api/team/atl_[redacted]/[encoded]',
        status: 401,
        request_id: 'three',
        address: '203.0.113.9',
      },
      { level: 'info', path: '/api/team-billing/2026-10-01T00:00:00/x', status: 401, request_id: 'four' },
    ]);
    for (const line of lines) expect(line['duration_ms']).toEqual(expect.any(Number));
    expect(JSON.stringify(gateway.logged())).not.toMatch(new RegExp(`hunter2|${key}`));
  });

  it.each([
    ['a letter', (key: string) => `%61${key.slice(1)}`],
    ['a letter, twice over', (key: string) => `%2561${key.slice(1)}`],
    ['the whole', (key: string) => [...Buffer.from(key)].map((byte) => `%${byte.toString(16)}`).join('')],
    ['a letter, after a colon', (key: string) => `%3A${key.replace('_', '%5F')}`],
  ])('holds no key of which is percent-encoded %s', async (_what, encode) => {
    gateway = await startGateway();
    const key = gateway.services.key();
    for (const url of [`/api/team/${encode(key)}`, `/api/nowhere/${encode(key)}/x`, `/nowhere/%zz${encode(key)}`]) {
      await gateway.call('GET', url, { key });
    }
    const lines = gateway.logged().filter(({ msg }) => msg === 'answered');
    expect(lines.map(({ path }) => path)).toEqual([
      '/api/team/[encoded]',
      '/api/nowhere/[encoded]/x',
      '/nowhere/[encoded]',
    ]);
    expect(JSON.stringify(gateway.logged())).not.toContain(key.slice(5));
  });

  /** Sends a request with the id `gone`, and hangs up once `until` has come true. Resolves with the line of it. */
  async function hangUp(lines: readonly string[], until: () => boolean): Promise<Record<string, unknown>> {
    await gateway.app.listen(0, '127.0.0.1');
    const { port } = gateway.app.getHttpServer().address() as AddressInfo;
    const [first = '', ...others] = lines;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write([first, 'Host: x', 'x-request-id: gone', ...others].join('\r\n'));
    while (!until()) await delay(5);
    socket.destroy();
    for (;;) {
      const line = gateway.logged().find(({ request_id }) => request_id === 'gone');
      if (line) return line;
      await delay(5);
    }
  }

  it('is kept also of one whose client hangs up before the response begins', async () => {
    gateway = await startGateway();
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    gateway.services.answer(teams.get, async () => (await held, aTeam()));
    const key = gateway.services.key();
    const lines = [`GET /api/team/${teamId} HTTP/1.1`, `x-api-key: ${key}`, '', ''];
    const line = await hangUp(lines, () => gateway.services.callsOf(teams.get).length === 1);
    letGo();
    expect(line).toMatchObject({
      msg: 'connection ended before the response was sent',
      aborted: true,
      route: '/api/team/:team_id',
      address: '127.0.0.1',
      user_id: expect.any(String),
    });
    expect(line).not.toHaveProperty('status');
    expect((await gateway.call<string>('GET', '/metrics')).body).toContain(
      'http_request_duration_seconds_count{service="gateway",method="GET",route="/api/team/:team_id",status="none"} 1',
    );
  });

  it('is kept also of one whose client hangs up within the body', async () => {
    gateway = await startGateway();
    const key = gateway.services.key();
    const head = ['POST /api/team HTTP/1.1', `x-api-key: ${key}`, 'content-type: application/json'];
    const isKnown = (): boolean => gateway.services.callsOf(credentials.verify).length === 1;
    const line = await hangUp([...head, 'content-length: 100', '', '{"name":'], isKnown);
    expect(line).toMatchObject({ aborted: true, method: 'POST', route: '/api/team' });
  });

  it('says of a response that was whole that it was answered, and not that it was aborted', async () => {
    gateway = await startGateway();
    await gateway.app.listen(0, '127.0.0.1');
    expect((await fetch(`${await gateway.app.getUrl()}/api/nowhere`)).status).toBe(401);
    while (gateway.logged().length === 0) await delay(5);
    expect(gateway.logged()).toMatchObject([{ msg: 'answered', status: 401 }]);
    expect(gateway.logged()[0]).not.toHaveProperty('aborted');
  });

  it('says how long it took, from the head of the request on', async () => {
    gateway = await startGateway();
    gateway.services.answer(teams.get, async () => (await delay(20), aTeam()));
    await gateway.call('GET', `/api/team/${teamId}`, { key: gateway.services.key() });
    const [line] = gateway.logged().filter(({ msg }) => msg === 'answered');
    expect(line?.['duration_ms']).toBeGreaterThan(15);
  });

  it('is a figure by method, route and status, beside those of the process', async () => {
    gateway = await startGateway();
    await gateway.call('GET', '/api/team/x', { key: gateway.services.key() });
    await gateway.call('GET', '/api/nowhere/x');
    const { status, headers, body } = await gateway.call<string>('GET', '/metrics');
    expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('text/plain')]);
    expect(body).toContain(
      'http_request_duration_seconds_count{service="gateway",method="GET",route="/api/team/:team_id",status="400"} 1',
    );
    expect(body).toContain(
      'http_request_duration_seconds_count{service="gateway",method="GET",route="none",status="401"} 1',
    );
    expect(body).toContain('process_resident_memory_bytes');
  });
});
