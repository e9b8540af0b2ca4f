import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of
 * those takes a port before its listener does.
 */
const anyPorts = { first: 10_000, count: 11_000 };

/**
 * Returns the port, or a free one for 0. Throws if it is in use, if this user may not open it, or if `host` is not an
 * address of this machine. Called before anything is started, so that nothing has to be undone; `command` is the
 * command to repeat with another port.
 */
export async function requireFreePort(port: number, host: string, command: string): Promise<number> {
  for (;;) {
    const wanted = port === 0 ? anyPorts.first + randomInt(anyPorts.count) : port;
    const why = await whyNot(wanted, host);
    if (why === undefined) return wanted;
    if (why === 'EACCES') throw new Error(`only root may open port ${wanted}. Choose another: PORT=3000 ${command}`);
    if (why !== 'EADDRINUSE') throw new Error(`HOST is ${JSON.stringify(host)}, ${noAddress}`);
    if (port !== 0)
      throw new Error(`port ${port} is taken by another program. Choose another: PORT=${port + 1} ${command}`);
  }
}

/**
 * Throws where a setting, an IP address on which something is to listen later, is no address of this machine:
 * `variable` is its name. Called before anything is started.
 */
export async function requireOwnAddress(variable: string, host: string): Promise<void> {
  const why = await whyNot(0, host);
  if (why !== undefined) throw new Error(`${variable} is ${JSON.stringify(host)}, ${noAddress}`);
}

const noAddress =
  'which is no address of this machine. With 127.0.0.1 only this machine can connect; with 0.0.0.0 all who reach any of its addresses can.';

/** Why a listener would be refused: the code of the system's error. Undefined where it would not. */
async function whyNot(port: number, host: string): Promise<string | undefined> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), 'listening');
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && refusals.has(code)) return code;
    throw error;
  } finally {
    probe.close();
  }
}

/** Taken, not allowed, an address of another machine, a name that nobody knows or that cannot be asked for. */
const refusals = new Set(['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN']);
