import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Turns } from '@atoll/waiting';
import { startGateway } from '../testing/gateway-fixture.js';
import { takeTurns } from './request-turns.js';

let server: Server;
let sockets: Socket[];
beforeEach(() => {
  sockets = [];
});
afterEach(() => {
  sockets.forEach((socket) => socket.destroy());
});

async function open(from: string, to: Server = server): Promise<Socket> {
  const { port } = to.address() as AddressInfo;
  const accepted = once(to, 'connection');
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined);
  sockets.push(socket.resume());
  await Promise.all([once(socket, 'connect'), accepted]);
  return socket;
}

const ask = (path: string, from = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\n${from && `X-Forwarded-For: ${from}\r\n`}\r\n`;

describe('a server', () => {
  /** Paths of requests, in the order in which they were begun. */
  let begun: string[];
  let countBegun: () => void;
  let turns: Turns;

  beforeEach(async () => {
    begun = [];
    countBegun = () => undefined;
    server = createServer((request, response) => {
      begun.push(request.url ?? '');
      response.end();
      countBegun();
    });
    turns = new Turns();
    takeTurns(server, () => [], turns);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    server.close();
  });

  const allBegun = (count: number): Promise<void> =>
    new Promise((resolve) => {
      countBegun = () => void (begun.length >= count && resolve());
      countBegun();
    });

  it('begins a request of one address after one of each other address', async () => {
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

  it('does not begin a request whose client has gone before its turn', async () => {
    const socket = await open('127.0.0.2');
    const other = await open('127.0.0.2');
    server.on('request', ({ url, socket: peer }) => url === '/gone' && peer.destroy());
    socket.write(ask('/gone').repeat(2));
    await once(socket, 'close');
    other.write(ask('/next'));
    await allBegun(1);
    expect(begun).toEqual(['/next']);
  });

  it('keeps no requests whose clients have gone', async () => {
    let waiting = 0;
    jest.spyOn(turns, 'queue').mockImplementation(() => {
      waiting += 1;
      return () => void (waiting -= 1);
    });
    const accepted = once(server, 'connection');
    const socket = await open('127.0.0.2');
    const [peer] = (await accepted) as [Socket];
    const came = new Promise<void>((resolve) => server.on('request', () => waiting === 16 && resolve()));
    socket.write(ask('/gone').repeat(16));
    await came;
    const gone = new Promise((resolve) => peer.once('close', resolve));
    socket.resetAndDestroy();
    await gone;
    await turn();
    expect(waiting).toBe(0);
  });

  it('begins no requests in a turn that accepts a connection, unless it refuses it', async () => {
    const pass = jest.spyOn(turns, 'pass');
    await open('127.0.0.2');
    expect(pass).toHaveBeenCalledTimes(1);
    server.prependListener('connection', (socket: Socket) => socket.destroy());
    await open('127.0.0.2');
    expect(pass).toHaveBeenCalledTimes(1);
  });
});

it('a gateway that gets many requests of one address at once answers another before half of them', async () => {
  const gateway = await startGateway({ trustedProxies: ['127.0.0.2'] });
  await gateway.app.listen(0, '127.0.0.1');
  const ofGateway = gateway.app.getHttpServer();
  const proxy = await open('127.0.0.2', ofGateway);
  const answered: unknown[] = [];
  const all = new Promise<void>((resolve) =>
    ofGateway.on('request', ({ headers }, response: ServerResponse) => {
      const end = response.end.bind(response) as (...what: unknown[]) => ServerResponse;
      response.end = (...what: unknown[]) => {
        if (answered.push(headers['x-forwarded-for']) === 16) resolve();
        return end(...what);
      };
    }),
  );
  proxy.write(ask('/livez', '192.0.2.1').repeat(15) + ask('/livez', '198.51.100.1'));
  await all;
  expect(answered.indexOf('198.51.100.1')).toBeLessThan(8);
  await gateway.close();
});
