import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { NatsLink } from './nats-link.js';
import { until } from './transports-fixture.js';

/** A server that offers no TLS, and keeps what clients send to it. */
let server: Server;
let received: string;
let connections: number;

beforeEach(async () => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  received = '';
  connections = 0;
  server = createServer((socket) => {
    connections += 1;
    socket.on('data', (data) => (received += String(data)));
    socket.on('error', () => undefined);
    socket.write('INFO {"server_id":"A","version":"2.11.0","proto":1,"max_payload":1048576,"headers":true}\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
  jest.restoreAllMocks();
});

it.each(['tls://teams:secret@127.0.0.1:PORT', 'nats://teams:secret@127.0.0.1:PORT,tls://127.0.0.1:PORT'])(
  'sends nothing to a server without TLS, and tries again: %s',
  async (addresses) => {
    const { port } = server.address() as AddressInfo;
    const servers = addresses.replaceAll('PORT', String(port)).split(',');
    const link = NatsLink.open({ servers, reconnectWaitMs: 10 });
    // Of each connection that was opened before the third, it has read the greeting.
    await until(() => connections > 2 || received !== '');
    await link.close();
    expect(received).toBe('');
  },
);
