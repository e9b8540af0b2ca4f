import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of those takes a port
 * before its listener does.
 */
const anyPorts = { first: 10_000, count: 11_000 };

/**
 * The port, or a free one in place of 0. Throws where it is taken. Called before anything is started, so that nothing has
 * to be undone; `command` is what to try again with another port.
 */
export async function requireFreePort(port: number, host: string, command: string): Promise<number> {
  for (;;) {
    const wanted = port === 0 ? anyPorts.first + randomInt(anyPorts.count) : port;
    if (await isFree(wanted, host)) return wanted;
    if (port !== 0) throw new Error(`port ${port} is taken by another program. Choose another: PORT=${port + 1} ${command}`);
  }
}

async function isFree(port: number, host: string): Promise<boolean> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return false;
  } finally {
    probe.close();
  }
}
