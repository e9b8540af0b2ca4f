import { once } from 'node:events';
import { connect, Socket, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { ConnectionLimits, OpenConnections } from './open-connections.js';

let gateway: GatewayUnderTest;
let sockets: Socket[] = [];
afterEach(async () => {
  sockets.forEach((socket) => socket.destroy());
  sockets = [];
  await gateway.close();
});

async function start(limits: Partial<ConnectionLimits>, options: Parameters<typeof startGateway>[0] = {}) {
  gateway = await startGateway({ limits: {}, ...options });
  Object.assign(gateway.app.get(ConnectionLimits), limits);
  await gateway.app.listen(0, '127.0.0.1');
}

/** A connection from an address of this machine; all under 127/8 are. */
async function open(from: string): Promise<Socket> {
  const { port } = gateway.app.getHttpServer().address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Resolves also where it is reset. */
const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

/** The status line of its answer, undefined where the connection is closed instead. */
async function ask(socket: Socket): Promise<string | undefined> {
  if (socket.destroyed) return undefined;
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  const answer = await Promise.race([new Promise<Buffer>((resolve) => socket.once('data', resolve)), closed(socket)]);
  return answer?.toString().split('\r\n')[0];
}

const ok = 'HTTP/1.1 200 OK';

/** Opens one after the other, and asks something over each. */
async function openAndAsk(from: string, count: number): Promise<Socket[]> {
  const opened: Socket[] = [];
  for (let each = 0; each < count; each++) {
    const socket = await open(from);
    expect(await ask(socket)).toBe(ok);
    opened.push(socket);
  }
  return opened;
}

describe('an address that opens more connections than one may have', () => {
  it('loses those that have been idle for longest, and no other address loses one', async () => {
    await start({ ofNetwork: 3 });
    const [other] = await openAndAsk('127.0.0.2', 1);
    const [first, second, third] = await openAndAsk('127.0.0.3', 3);
    expect(await ask(first as Socket)).toBe(ok);
    const gone = closed(second as Socket);
    const [fourth] = await openAndAsk('127.0.0.3', 1);
    await gone;
    for (const kept of [first, third, fourth, other]) expect(await ask(kept as Socket)).toBe(ok);
  });

  it('loses those whose first request has not come whole', async () => {
    await start({ ofNetwork: 1 });
    const slow = await open('127.0.0.3');
    slow.write('GET /livez HTTP/1.1\r\nHost: ');
    const gone = closed(slow);
    await openAndAsk('127.0.0.3', 1);
    await gone;
  });

  it('gets no further one while requests of all of them wait for their answers', async () => {
    await start({ ofNetwork: 1 });
    const busy = await open('127.0.0.3');
    busy.write(
      'POST /api/user/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n',
    );
    await once(gateway.app.getHttpServer(), 'request');
    const refused = await open('127.0.0.3');
    expect(await ask(refused)).toBeUndefined();
    busy.write('{}');
    expect(String(await once(busy, 'data'))).toMatch(/^HTTP\/1\.1 4/);
    await openAndAsk('127.0.0.3', 1);
  });

  it('may have them if it is a trusted proxy', async () => {
    await start({ ofNetwork: 1 }, { trustedProxies: ['127.0.0.3'] });
    for (const socket of await openAndAsk('127.0.0.3', 3)) expect(await ask(socket)).toBe(ok);
  });

  it('may have them if it is a trusted proxy, but no other address of the same network', async () => {
    await start({ ofNetwork: 2 }, { trustedProxies: ['2001:db8::5'] });
    const connections = gateway.app.get(OpenConnections);
    const from = (remoteAddress: string): Socket => {
      const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
      sockets.push(socket);
      connections.add(socket);
      return socket;
    };
    const neighbours = [from('2001:db8::7')];
    const ofProxy = Array.from({ length: 4 }, () => from('2001:db8::5'));
    neighbours.push(...Array.from({ length: 3 }, () => from('2001:db8::7')));
    expect(ofProxy.filter(({ destroyed }) => destroyed)).toHaveLength(0);
    expect(neighbours.filter(({ destroyed }) => !destroyed)).toHaveLength(2);
  });

  it('may have them without limits', async () => {
    await start({ ofNetwork: 1 }, { limits: 'off' });
    for (const socket of await openAndAsk('127.0.0.3', 3)) expect(await ask(socket)).toBe(ok);
  });
});

describe('where as many connections are open as there may be', () => {
  it('a new one takes the place of one of the address that has most', async () => {
    await start({ ofAll: 4 });
    const [few] = await openAndAsk('127.0.0.2', 1);
    const [first, ...rest] = await openAndAsk('127.0.0.3', 3);
    const gone = closed(first as Socket);
    const [newcomer] = await openAndAsk('127.0.0.4', 1);
    await gone;
    for (const kept of [few, ...rest, newcomer]) expect(await ask(kept as Socket)).toBe(ok);
  });
});
