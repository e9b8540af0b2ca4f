import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/**
 * The port, or a free one in place of 0. Throws where it is taken. Called before anything is started, so that nothing has
 * to be undone; `command` is what to try again with another port.
 */
export async function requireFreePort(port: number, host: string, command: string): Promise<number> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), 'listening');
    return (probe.address() as AddressInfo).port;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${port} is taken by another program. Choose another: PORT=${port + 1} ${command}`);
  } finally {
    probe.close();
  }
}
