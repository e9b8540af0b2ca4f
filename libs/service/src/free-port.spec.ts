import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { requireFreePorts } from './free-port.js';

/** From here on Linux, and from 49,152 other systems, give ports to whoever connects. */
const firstOfConnections = 32_768;

const host = '127.0.0.1';

async function openServer(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** One that nobody has now. */
async function unused(): Promise<number> {
  const { server, port } = await openServer();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it('in place of 0 stands a free port that no outgoing connection takes before its listener does', async () => {
  for (let at = 0; at < 20; at += 1) {
    const [port = 0] = await requireFreePorts([{ variable: 'PORT', port: 0, host }]);
    expect(port).toBeGreaterThan(1_024);
    expect(port).toBeLessThan(firstOfConnections);
    const server = createServer().listen(port, host);
    await once(server, 'listening');
    server.close();
  }
});

it('ports that are taken are refused all at once, each with its variable and the command for another', async () => {
  const [one, other] = [await openServer(), await openServer()];
  const listeners = [
    { variable: 'PORT', port: one.port, host },
    { variable: 'ATOLL_COMPAT_PORT', port: other.port, host },
  ];
  await expect(requireFreePorts(listeners, 'npm start')).rejects.toThrow(
    new Error(
      [
        `port ${one.port} is taken by another program. Choose another: PORT=${one.port + 1} npm start`,
        `port ${other.port} is taken by another program. Choose another: ATOLL_COMPAT_PORT=${other.port + 1} npm start`,
      ].join('\n'),
    ),
  );
  for (const { server } of [one, other]) server.close();
});

it('two listeners at one port of an address are refused, also where one of them waits for its port; at two addresses they are not', async () => {
  const port = await unused();
  const [first, second] = [
    { variable: 'PORT', port, host: '0.0.0.0' },
    { variable: 'ATOLL_COMPAT_PORT', port, host },
  ];
  for (const waits of [false, true]) {
    await expect(requireFreePorts([first, { ...second, waits }])).rejects.toThrow(
      new Error(`ATOLL_COMPAT_PORT is ${port}, as PORT: they must differ`),
    );
    await expect(
      requireFreePorts([
        { ...second, waits },
        { ...first, host: '127.0.0.2' },
      ]),
    ).resolves.toEqual([port, port]);
  }
});

it('a listener that waits for its port may find it taken', async () => {
  const { server, port } = await openServer();
  const listener = { variable: 'ATOLL_SSH_PORT', port, host, waits: true };
  await expect(requireFreePorts([listener])).resolves.toEqual([port]);
  server.close();
});

it.each(['999.1.1.1', '192.0.2.1'])(
  'a host that is no address of this machine, as %s, is refused, with what there is to choose',
  async (host) => {
    await expect(requireFreePorts([{ variable: 'PORT', port: 0, host }])).rejects.toThrow(
      `HOST is "${host}", which is no address of this machine. With 127.0.0.1`,
    );
  },
);
