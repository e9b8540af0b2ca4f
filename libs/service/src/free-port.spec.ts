import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { requireFreePort } from './free-port.js';

/** From here on Linux, and from 49,152 other systems, give ports to whoever connects. */
const firstOfConnections = 32_768;

it('in place of 0 stands a free port that no outgoing connection takes before its listener does', async () => {
  for (let at = 0; at < 20; at += 1) {
    const port = await requireFreePort(0, '127.0.0.1', 'npm start');
    expect(port).toBeGreaterThan(1_024);
    expect(port).toBeLessThan(firstOfConnections);
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
  }
});

it('a port that is taken is refused, with the command for another', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  await expect(requireFreePort(port, '127.0.0.1', 'npm start')).rejects.toThrow(
    `port ${port} is taken by another program. Choose another: PORT=${port + 1} npm start`,
  );
  other.close();
});

it.each(['999.1.1.1', '192.0.2.1'])(
  'a host that is no address of this machine, as %s, is refused, with what there is to choose',
  async (host) => {
    await expect(requireFreePort(0, host, 'npm start')).rejects.toThrow(
      `HOST is "${host}", which is no address of this machine. With 127.0.0.1`,
    );
  },
);
