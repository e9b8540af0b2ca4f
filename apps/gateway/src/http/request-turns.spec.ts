import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Turns } from '@atoll/waiting';
import { startGateway } from '../testing/gateway-fixture.js';
import { takeTurns } from './request-turns.js';

/** Paths of requests, in the order in which they were begun. */
let begun: string[];
let server: Server;
let sockets: Socket[];

beforeEach(async () => {
  [begun, sockets] = [[], []];
  server = createServer((request, response) => {
    begun.push(request.url ?? '');
    response.end();
  });
  takeTurns(server, () => [], new Turns());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  sockets.forEach((socket) => socket.destroy());
  server.close();
});

async function open(from: string, to: Server = server): Promise<Socket> {
  const { port } = to.address() as AddressInfo;
  const accepted = once(to, 'connection');
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined);
  sockets.push(socket.resume());
  await Promise.all([once(socket, 'connect'), accepted]);
  return socket;
}

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function allBegun(count: number): Promise<void> {
  while (begun.length < count) await turn();
}

it('a request of one address waits for one of each other address', async () => {
  const many = await open('127.0.0.2');
  const few = await open('127.0.0.3');
  const came = new Promise<void>((resolve) =>
    server.on('request', ({ url }) => {
      if (url === '/many/0') few.write(ask('/few'));
      if (url === '/few') resolve();
    }),
  );
  many.write(Array.from({ length: 200 }, (_, at) => ask(`/many/${at}`)).join(''));
  await came;
  const before = begun.length;
  await allBegun(201);
  expect(begun.indexOf('/few')).toBeLessThanOrEqual(before + 1);
});

it('a request whose client has gone before its turn is not begun', async () => {
  const socket = await open('127.0.0.2');
  const other = await open('127.0.0.2');
  server.on('request', ({ url, socket: peer }) => url === '/gone' && peer.destroy());
  socket.write(ask('/gone'));
  await once(socket, 'close');
  other.write(ask('/next'));
  await allBegun(1);
  expect(begun).toEqual(['/next']);
});

it('an address that sends many requests at once to a gateway has not half of its answers before another has its own', async () => {
  const gateway = await startGateway();
  await gateway.app.listen(0, '127.0.0.1');
  const ofGateway = gateway.app.getHttpServer();
  const many: Socket[] = [];
  for (let each = 0; each < 20; each++) many.push(await open('127.0.0.2', ofGateway));
  const few = await open('127.0.0.3', ofGateway);
  for (const socket of many) socket.write(ask('/api/docs').repeat(16));
  few.write(ask('/api/docs'));
  const answered = (): unknown[] => gateway.logged().flatMap(({ msg, address }) => (msg === 'answered' ? address : []));
  while (answered().length < 20 * 16 + 1) await turn();
  expect(answered().indexOf('127.0.0.3')).toBeLessThan(10 * 16);
  await gateway.close();
});
