import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { connect, Socket, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { terminals } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { WebSocketServer, type WebSocket as Peer, WebSocket } from 'ws';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

const ticket = 'v1.k1.abc';
const path = '/api/pods/notebook-qwert/terminal';

let gateway: GatewayUnderTest;
let port: number;
let replica: Server;
/** What the replica was sent, and with whom it speaks. */
let asked: IncomingMessage[] = [];
let peers: Peer[] = [];
/** Whether the replica takes tickets for used ones. */
let isUsed = false;

async function startReplica(): Promise<Server> {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'atoll.v1' });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    asked.push(request);
    if (isUsed) return void socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    sockets.handleUpgrade(request, socket, head, (peer) => {
      peers.push(peer);
      peer.on('error', () => undefined);
      peer.on('message', (data: Buffer, isBinary) => peer.send(`${isBinary ? 'bytes' : 'text'} ${data.toString()}`));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function listening(options: Parameters<typeof startGateway>[0] = {}): Promise<[GatewayUnderTest, number]> {
  const started = await startGateway({ publicUrl: 'http://atoll.example', ...options });
  started.services.answer(terminals.locate, ({ ticket: given }) => {
    if (given !== ticket) throw new AppError('unauthenticated', 'The ticket opens no terminal.');
    return { host: '127.0.0.1', port: (replica.address() as AddressInfo).port };
  });
  await started.app.listen(0, '127.0.0.1');
  return [started, (started.app.getHttpServer().address() as AddressInfo).port];
}

beforeAll(async () => {
  replica = await startReplica();
  [gateway, port] = await listening();
});
beforeEach(() => {
  asked = [];
  peers = [];
});
afterAll(async () => {
  await gateway.close();
  replica.close();
});

const dial = (
  options: { protocols?: string[]; origin?: string; headers?: Record<string, string>; at?: string; to?: number } = {},
) => {
  const { protocols = ['atoll.v1', ticket], origin, headers = {}, at = path, to = port } = options;
  return new WebSocket(`ws://127.0.0.1:${to}${at}`, protocols, { ...(origin && { origin }), headers });
};
/** Which `ws` has and does not show. */
const socketOf = (socket: WebSocket | undefined) => (socket as unknown as { _socket: Socket })._socket;
/** What the gateway answers in place of the WebSocket. */
async function refusal(socket: WebSocket): Promise<{ status: number | undefined; code: string; instance: string }> {
  socket.on('error', () => undefined);
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  let body = '';
  for await (const chunk of response) body += String(chunk);
  const { code, instance } = JSON.parse(body) as { code: string; instance: string };
  return { status: response.statusCode, code, instance };
}

describe('the WebSocket of a terminal', () => {
  it('is handed over to the replica that its ticket names: frames both ways, and its end from either side', async () => {
    const browser = dial({
      origin: 'http://atoll.example',
      headers: { cookie: '__Host-atoll=secret', authorization: 'Bearer secret' },
    });
    await once(browser, 'open');
    expect(browser.protocol).toBe('atoll.v1');
    const answer = once(browser, 'message');
    browser.send(Buffer.from('hello'));
    expect(String((await answer)[0])).toBe('bytes hello');
    const [request] = asked;
    expect(request?.url).toBe('/notebook-qwert');
    expect(request?.headers).toMatchObject({
      'sec-websocket-protocol': `atoll.v1, ${ticket}`,
      'x-forwarded-for': '127.0.0.1',
    });
    expect(JSON.stringify(request?.rawHeaders)).not.toContain('secret');
    expect(gateway.services.callsOf(terminals.locate).at(-1)).toMatchObject({
      input: { pod_name: 'notebook-qwert', ticket },
      context: { caller: { kind: 'system', service: 'gateway' } },
    });
    const closed = once(browser, 'close');
    peers[0]?.close(1008, 'You may not.');
    expect((await closed).map(String)).toEqual(['1008', 'You may not.']);
    const leaver = dial();
    await once(leaver, 'open');
    const left = once(peers[1]!, 'close');
    leaver.terminate();
    await left;
  });

  it('is refused by a problem where the ticket was used before', async () => {
    isUsed = true;
    expect(await refusal(dial())).toEqual({ status: 401, code: 'unauthenticated', instance: path });
    isUsed = false;
    expect(asked).toHaveLength(1);
  });

  it('is refused with 400 where it is no handshake of a WebSocket, and its ticket stays good', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': `atoll.v1, ${ticket}` };
    for (const more of [{}, { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'sec-websocket-version': '7' }]) {
      const request = httpRequest({ host: '127.0.0.1', port, path, headers: { ...headers, ...more } }).end();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.resume();
      expect(response.statusCode).toBe(400);
    }
    expect(asked).toEqual([]);
  });

  it('breaks when its replica dies', async () => {
    const browser = dial();
    await once(browser, 'open');
    const closed = once(browser, 'close');
    peers[0]?.terminate();
    expect((await closed)[0]).toBe(1006);
  });

  it('asks both ends by TCP whether they are there, so that one whose host is gone ends it, however long nobody types', async () => {
    const asks = jest.spyOn(Socket.prototype, 'setKeepAlive');
    const browser = dial();
    await once(browser, 'open');
    const asked = (asks.mock.contexts as Socket[]).filter((_, call) => String(asks.mock.calls[call]) === 'true,30000');
    asks.mockRestore();
    expect(asked.some(({ localPort }) => localPort === port)).toBe(true);
    expect(asked.some(({ remotePort }) => remotePort === (replica.address() as AddressInfo).port)).toBe(true);
    browser.terminate();
  });

  it.each([
    ['a ticket that is none', { protocols: ['atoll.v1', 'v1.k1.forged'] }, 401, 'unauthenticated'],
    ['no ticket', { protocols: ['atoll.v1'] }, 401, 'unauthenticated'],
    ['another protocol', { protocols: ['other', ticket] }, 401, 'unauthenticated'],
    ['a page of another origin', { origin: 'http://evil.example' }, 403, 'forbidden'],
    ['a page of another port', { origin: 'http://atoll.example:81' }, 403, 'forbidden'],
  ])('is refused to %s', async (_who, options, status, code) => {
    expect(await refusal(dial(options))).toEqual({ status, code, instance: path });
    expect(asked).toEqual([]);
  });

  it('is refused with 503 where the replica is gone, and with what the platform says where it cannot be found', async () => {
    const [other, at] = await listening();
    other.services.answer(terminals.locate, () => ({ host: '127.0.0.1', port: 1 }));
    expect(await refusal(dial({ to: at }))).toMatchObject({ status: 503, code: 'unavailable' });
    other.services.stop(terminals.locate);
    expect(await refusal(dial({ to: at }))).toMatchObject({ status: 503, code: 'unavailable' });
    await other.close();
  });

  it.each([
    ['guessed', 'v1.k1.guess'],
    ['used before', ticket],
  ])('counts as a request without credentials where its ticket was %s', async (_what, given) => {
    const [other, at] = await listening({ limits: { anonymous: { count: 2, seconds: 3_600 } } });
    isUsed = given === ticket;
    const tries = [];
    for (let made = 0; made < 3; made += 1) tries.push(await refusal(dial({ to: at, protocols: ['atoll.v1', given] })));
    isUsed = false;
    expect(tries.map(({ status }) => status)).toEqual([401, 401, 429]);
    await other.close();
  });

  it('does not count where its ticket was good, however many are opened', async () => {
    const [other, at] = await listening({ limits: { anonymous: { count: 2, seconds: 3_600 } } });
    for (let made = 0; made < 5; made += 1) {
      const browser = dial({ to: at });
      await once(browser, 'open');
      browser.terminate();
    }
    await other.close();
  });

  it('is told that its gateway restarts, after the frame that it is reading, and does not hold it up', async () => {
    const [other, at] = await listening();
    const whole = dial({ to: at });
    await once(whole, 'open');
    const torn = dial({ to: at });
    await once(torn, 'open');
    const [said, sender, reader] = [once(torn, 'message'), socketOf(peers[1]), socketOf(torn)];
    // The first 104 bytes of a frame of 304 have come to the browser when the gateway closes.
    const before = reader.bytesRead;
    sender.write(Buffer.concat([Buffer.from([0x82, 126, 1, 44]), Buffer.alloc(100, 'a')]));
    while (reader.bytesRead < before + 104) await delay(5);
    const closed = [whole, torn].map((browser) => once(browser, 'close'));
    const gone = other.close();
    expect((await closed[0])?.map(String)).toEqual(['1012', 'The platform restarts here. Open the terminal again.']);
    sender.write(Buffer.alloc(200, 'a'));
    expect(String((await said)[0])).toBe('a'.repeat(300));
    expect((await closed[1])?.map(String)).toEqual(['1012', 'The platform restarts here. Open the terminal again.']);
    await gone;
  });

  it('holds the replica back where the browser does not read', async () => {
    const browser = dial();
    await once(browser, 'open');
    browser.pause();
    const peer = peers[0]!;
    const chunk = Buffer.alloc(1024 * 1024);
    let sent = 0;
    // Until a chunk stays in the sender's own buffer: whatever is between here and the browser holds no more.
    do {
      peer.send(chunk);
      sent += 1;
      await delay(20);
    } while (peer.bufferedAmount === 0 && sent < 200);
    expect(sent).toBeLessThan(64);
    browser.terminate();
  });
});

describe('another request to change the protocol', () => {
  it.each([
    ['/api/team', 'websocket'],
    [path, 'h2c'],
  ])('at %s to %s is answered as if it had not asked', async (at, upgrade) => {
    const request = httpRequest({
      host: '127.0.0.1',
      port,
      path: at,
      headers: { connection: 'Upgrade', upgrade },
    }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect([401, 405]).toContain(response.statusCode);
  });

  it('may be cut off before it is answered', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: atoll.v1, ${ticket}\r\n\r\n`,
    );
    socket.resetAndDestroy();
    socket.on('error', () => undefined);
    await once(socket, 'close');
    const browser = dial();
    await once(browser, 'open');
    browser.close();
  });
});
