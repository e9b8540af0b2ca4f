import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AddressInfo } from 'node:net';
import { teams } from '@atoll/contracts/teams';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { noteResponses } from './begun-responses.js';
import type { Problem } from './problem.js';
import { answerSocketError } from './socket-errors.js';

let gateway: GatewayUnderTest;
let port: number;
let key: string;
beforeAll(async () => {
  gateway = await startGateway();
  gateway.services.answer(teams.get, () => aTeam());
  key = gateway.services.key();
  await gateway.app.listen(0, '127.0.0.1');
  port = (gateway.app.getHttpServer().address() as AddressInfo).port;
});
afterAll(() => gateway.close());

/** Sends bytes as they are, and reads until the server closes. */
function send(bytes: string): Promise<{ status: number; head: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let answer = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
      resolve({ status: Number(head.split(' ')[1]), head: head.toLowerCase(), body });
    });
  });
}

const request = (...headers: string[]): string =>
  [`GET /api/team/${teamId} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n');

describe('what Node cannot read as a request is a problem too', () => {
  it.each<[string, string, number, string]>([
    ['1 MB of credential', request(`Authorization: Bearer ${'a'.repeat(1_000_000)}`), 431, 'payload_too_large'],
    ['1 MB of path', request().replace(teamId, 'a'.repeat(1_000_000)), 431, 'payload_too_large'],
    [
      'a thousand headers',
      request(...Array.from({ length: 1000 }, (_, index) => `X-Header-${index}: value`)),
      431,
      'payload_too_large',
    ],
    ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_input'],
    ['an unknown method', request().replace('GET', 'STEAL'), 405, 'method_not_allowed'],
    ['two lengths', request('Content-Length: 1', 'Content-Length: 2'), 400, 'invalid_input'],
    ['a length and chunks', request('Content-Length: 5', 'Transfer-Encoding: chunked'), 400, 'invalid_input'],
    ['a folded header', request('X-A: b', ' c'), 400, 'invalid_input'],
  ])('%s', async (_name, bytes, status, code) => {
    const answer = await send(bytes);
    expect(answer.status).toBe(status);
    expect(answer.head).toContain('content-type: application/problem+json');
    const problem = JSON.parse(answer.body) as Problem;
    expect(problem).toMatchObject({ code, status, statusCode: status, message: problem.detail, instance: '/' });
    expect(answer.head).toContain(`x-request-id: ${problem.request_id}`);
    expect(gateway.logged()).toContainEqual(
      expect.objectContaining({
        msg: 'request rejected before it was read',
        status,
        request_id: problem.request_id,
        address: '127.0.0.1',
      }),
    );
  });

  it('one header more than there may be, and says how many', async () => {
    const many = (count: number): string[] => Array.from({ length: count }, () => 'A: b');
    // Host, Connection and Authorization are among them.
    const withKey = `Authorization: Bearer ${key}`;
    expect((await send(request(withKey, ...many(997)))).status).toBe(200);
    const answer = await send(request(withKey, ...many(998)));
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      431,
      { detail: expect.stringMatching(/more than 1000 headers/) },
    ]);
  });

  it('a request that does not arrive in time, which may be sent again', async () => {
    const server = gateway.app.getHttpServer();
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.once('connection', (socket) => server.emit('clientError', late, socket));
    const answer = await send('GET /api');
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([408, { code: 'request_timeout', status: 408 }]);
  });

  it('CONNECT, for there is no proxy here', async () => {
    const answer = await send('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nwhat would go through the tunnel');
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([405, { code: 'method_not_allowed', status: 405 }]);
    expect(answer.head).toContain('content-type: application/problem+json');
    expect(answer.head).toMatch(/^allow: get, head, post, put, delete\r$/m);
  });

  it('and the gateway goes on', async () =>
    expect((await send(request(`Authorization: Bearer ${key}`))).status).toBe(200));
});

describe('what cannot be read', () => {
  /** Sends `bytes`, and `more` once some of the answer is there. Resolves with all that was received until the end. */
  const exchange = (to: number, bytes: string, more: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect(to, '127.0.0.1', () => socket.write(bytes));
      let received = '';
      socket.once('data', () => socket.write(more));
      socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(received));
    });

  it('gets no response into one that is under way, and cuts that off', async () => {
    const server = createServer((_request, response) => void response.write('begun'));
    noteResponses(server);
    const noted: number[] = [];
    server.on('clientError', (error, socket) => answerSocketError(error, socket, (status) => noted.push(status)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const received = await exchange((server.address() as AddressInfo).port, request(), '\x01garbage\r\n\r\n');
    server.close();
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nbegun\r\n$/);
    expect([received.split('HTTP/1.1').length - 1, noted]).toEqual([1, []]);
  });

  it('gets none where the request to which it belongs has its own already', async () => {
    const head = ['POST /api/team HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked', '', ''].join('\r\n');
    const received = await exchange(port, head, 'no length\r\n');
    expect(received).toMatch(/^HTTP\/1\.1 401 /);
    expect(received.split('HTTP/1.1')).toHaveLength(2);
  });

  it('gets one behind a response that is over', async () => {
    const received = await exchange(port, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n', 'garbage\r\n\r\n');
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });
});

describe('a request without a Host', () => {
  const hostless = (...headers: string[]): string => request(...headers).replace('Host: x\r\n', '');

  it('is refused as a problem, after its credentials and its route', async () => {
    const authorized = hostless(`Authorization: Bearer ${key}`);
    const answer = await send(authorized);
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      400,
      { code: 'invalid_input', detail: 'The request has no Host header.' },
    ]);
    expect(answer.head).toContain('content-type: application/problem+json');
    expect((await send(hostless())).status).toBe(401);
    expect((await send(authorized.replace('/api/team/', '/api/nowhere/'))).status).toBe(404);
    expect((await send(hostless().replace(/\/api\S*/, '/livez'))).status).toBe(400);
  });

  it('is fine in HTTP/1.0', async () => {
    expect((await send(hostless(`Authorization: Bearer ${key}`).replace('HTTP/1.1', 'HTTP/1.0'))).status).toBe(200);
  });
});

describe('a request with two Hosts', () => {
  it.each(['Host: x', 'host: evil.example'])('is refused, whichever the second is: %s', async (second) => {
    const answer = await send(request(`Authorization: Bearer ${key}`, second));
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      400,
      { detail: 'The request has more than one Host header.' },
    ]);
  });
});

describe('on a real socket', () => {
  it('a second Authorization header is not overlooked', async () => {
    const other = gateway.services.key();
    expect((await send(request(`Authorization: Bearer ${key}`, `Authorization: Bearer ${other}`))).status).toBe(401);
    expect((await send(request(`Authorization: Bearer ${key}`, `Authorization: Bearer ${key}`))).status).toBe(200);
    expect((await send(request(`x-api-key: ${key}`, `X-API-Key: ${other}`))).status).toBe(401);
  });

  it('8 KB of credential is an ordinary 401', async () => {
    expect((await send(request(`Authorization: Bearer atl_${'a'.repeat(8192)}`))).status).toBe(401);
  });

  it.each(['/api/docs/../openapi.yaml', '/api/docs/%2e%2e/package.json', '/api/docs/static/..%2f..%2fpackage.json'])(
    'a way out of the documentation leads nowhere: %s',
    async (path) => {
      const answer = await send(request().replace(/\/api\S*/, path));
      expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
        404,
        { code: 'not_found', detail: 'There is nothing at this path.' },
      ]);
    },
  );

  it('a whole URL for a target is its path', async () => {
    const authorized = request(`Authorization: Bearer ${key}`);
    expect((await send(authorized.replace('/api', 'http://user:hunter2@x/api'))).status).toBe(200);
    expect((await send(authorized.replace('GET /api', 'PATCH HTTP://x/api'))).status).toBe(405);
    const unknown = await send(request().replace(/\/api\S*/, 'http://x/api/nowhere?a=1'));
    expect([unknown.status, JSON.parse(unknown.body)]).toMatchObject([401, { instance: '/api/nowhere' }]);
    expect((await send(request().replace(/\/api\S*/, 'http://x?a=1'))).status).toBe(302);
    expect(JSON.stringify(gateway.logged())).not.toContain('hunter2');
  });

  it('an expectation that cannot be met is not asked for', async () => {
    expect((await send(request(`Authorization: Bearer ${key}`, 'Expect: miracles'))).status).toBe(200);
  });

  it('a GET may carry a body, in chunks too', async () => {
    const authorized = request(
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    );
    expect((await send(`${authorized}2\r\n{}\r\n0\r\n\r\n`)).status).toBe(200);
    expect((await send(`${authorized}0\r\n\r\n`)).status).toBe(200);
    expect((await send(`${authorized}7\r\n{"a":1}\r\n0\r\n\r\n`)).status).toBe(400);
    expect((await send(`${authorized.replace('json', 'xml')}2\r\n{}\r\n0\r\n\r\n`)).status).toBe(415);
  });

  it('a body that goes on beyond 64 KiB is a 413', async () => {
    const authorized = request(
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    );
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`;
    expect((await send(`${authorized}${chunk.repeat(5)}0\r\n\r\n`)).status).toBe(413);
  });
});
