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

/** Connections from an address that no machine of a test has. */
function add(remoteAddress: string, count: number, state: 'idle' | 'busy' = 'idle'): Socket[] {
  const connections = gateway.app.get(OpenConnections);
  return Array.from({ length: count }, () => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
    sockets.push(socket);
    connections.add(socket);
    if (state === 'busy') connections.count(socket, 1);
    return socket;
  });
}

/** Which of them are still open. */
const left = (opened: readonly Socket[]): number[] => opened.flatMap(({ destroyed }, at) => (destroyed ? [] : at));

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

  it('loses those whose first request has not come whole before one that has been idle for less time', async () => {
    await start({ ofNetwork: 2 });
    const slow = await open('127.0.0.3');
    const [idle] = await openAndAsk('127.0.0.3', 1);
    slow.write('GET /livez HTTP/1.1\r\nHost: ');
    const gone = closed(slow);
    const [newcomer] = await openAndAsk('127.0.0.3', 1);
    await gone;
    for (const kept of [idle, newcomer]) expect(await ask(kept as Socket)).toBe(ok);
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
    const neighbours = add('2001:db8::7', 1);
    const ofProxy = add('2001:db8::5', 4);
    neighbours.push(...add('2001:db8::7', 3));
    expect(left(ofProxy)).toEqual([0, 1, 2, 3]);
    expect(left(neighbours)).toEqual([2, 3]);
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

  it('and none is idle, a new one takes the place of the longest busy one of an address that has more', async () => {
    await start({ ofAll: 5 });
    const few = add('192.0.2.1', 2, 'busy');
    const many = add('192.0.2.2', 3, 'busy');
    const [first] = many as [Socket];
    gateway.app.get(OpenConnections).count(first, -1);
    gateway.app.get(OpenConnections).count(first, 1);
    const newcomers = add('192.0.2.3', 1, 'busy');
    expect([few, many, newcomers].map(left)).toEqual([[0, 1], [0, 2], [0]]);
  });

  it('and none is idle, one of an address that has as many as any other is closed', async () => {
    await start({ ofAll: 4 });
    const one = add('192.0.2.1', 2, 'busy');
    const other = add('192.0.2.2', 2, 'busy');
    expect(left(add('192.0.2.1', 1))).toEqual([]);
    expect([one, other].map(left)).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });

  it('addresses with few of them lose no idle one to an address that keeps many busy', async () => {
    await start({ ofAll: 8 });
    const few = [...add('192.0.2.1', 1), ...add('192.0.2.2', 1)];
    const many = add('192.0.2.3', 6, 'busy');
    const newcomers = add('192.0.2.4', 1);
    const further = add('192.0.2.3', 1);
    expect([few, many, newcomers, further].map(left)).toEqual([[0, 1], [1, 2, 3, 4, 5], [0], []]);
  });

  it.each(['idle', 'busy'] as const)(
    'a trusted proxy that has less than half of them loses none (others: %s)',
    async (state) => {
      await start({ ofAll: 8 }, { trustedProxies: ['192.0.2.9'] });
      const ofProxy = add('192.0.2.9', 4);
      const others = [...add('192.0.2.1', 2, state), ...add('192.0.2.2', 2, state)];
      const newcomers = [...add('192.0.2.3', 1), ...add('192.0.2.9', 1)];
      expect([ofProxy, others, newcomers].map(left)).toEqual([
        [0, 1, 2, 3],
        [1, 3],
        [0, 1],
      ]);
    },
  );

  it('a trusted proxy that has more than half of them loses its longest idle one', async () => {
    await start({ ofAll: 4 }, { trustedProxies: ['192.0.2.9'] });
    const others = add('192.0.2.1', 1);
    const ofProxy = [...add('192.0.2.9', 1, 'busy'), ...add('192.0.2.9', 2)];
    const newcomers = add('192.0.2.2', 1);
    expect([ofProxy, others, newcomers].map(left)).toEqual([[0, 2], [0], [0]]);
  });
});
