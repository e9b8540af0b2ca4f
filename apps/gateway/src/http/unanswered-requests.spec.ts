import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { startListening, type Listening } from '../compat/testing/listening-fixture.js';

const bound = 16;

let { gateway, compat, close } = {} as Listening;
beforeAll(async () => {
  ({ gateway, compat, close } = await startListening());
});
afterAll(() => close());

describe.each<[string, () => NestFastifyApplication]>([
  ['the gateway', () => gateway.app],
  ['the compatibility mount', () => compat],
])('one connection to %s', (_name, app) => {
  const ask = 'GET /api/docs HTTP/1.1\r\nHost: x\r\n\r\n';
  let port: number;
  let begun: number;
  beforeAll(() => {
    const server = app().getHttpServer();
    ({ port } = server.address() as AddressInfo);
    begun = 0;
    server.on('request', () => (begun += 1));
  });

  it('is closed where more requests are sent at once than any client sends, and the rest of them is not begun', async () => {
    const socket = connect(port, '127.0.0.1').resume();
    socket.on('error', () => undefined);
    socket.write(ask.repeat(1_500));
    await once(socket, 'close');
    expect(begun).toBe(bound + 1);
    const refused = gateway.logged().filter(({ msg }) => msg === 'request rejected before it was read');
    expect(refused.at(-1)).toMatchObject({ status: 429, address: '127.0.0.1' });
  });

  it(`answers ${bound} requests that are sent at once`, async () => {
    const socket = connect(port, '127.0.0.1');
    const closing = ask.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    socket.write(ask.repeat(bound - 1) + closing);
    const answers = await text(socket);
    expect(answers.match(/^HTTP\/1\.1 200 OK/gm)).toHaveLength(bound);
  });

  it('answers any number of requests that are sent one after the other', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    for (let count = 0; count < 10 * bound; count += 1) {
      const request = get({ port, host: '127.0.0.1', path: '/api/docs', agent });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await text(response);
      sockets.add(request.socket);
      expect(response.statusCode).toBe(200);
    }
    expect(sockets.size).toBe(1);
    agent.destroy();
  });
});
