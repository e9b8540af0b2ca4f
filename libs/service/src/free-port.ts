import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of
 * those takes a port before its listener does.
 */
const anyPorts = { first: 10_000, count: 11_000 };

/** Makes 80, 443 and 22 ports that any user may open. */
const unprivileged = 8_000;

/** Where something is to listen. */
export interface Listener {
  /** The variable that sets the port. */
  readonly variable: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** An address of this machine, or a name of it. */
  readonly host: string;
  /** Whether it waits for a port that another process has, so that the port need not be free yet. */
  readonly waits?: boolean;
}

/**
 * The ports of the listeners in their order, with a free one for each 0. Throws an Error with a sentence for each port
 * that is in use, that this user may not open or that another of the listeners has, and for a `HOST` that is not an
 * address of this machine. Called before anything is started, so that nothing has to be undone; `command` is the
 * command to repeat with another port.
 */
export async function requireFreePorts(listeners: readonly Listener[], command = ''): Promise<number[]> {
  const held: Server[] = [];
  const ports = new Map<Listener, number>();
  const faults = new Set<string>();
  // All are held until the last one was tried, so that each finds those before it in its way; the ones that take any
  // port, or wait for theirs, come last.
  const order = (listener: Listener) => (listener.waits ? 2 : Number(listener.port === 0));
  try {
    for (const listener of listeners.toSorted((one, other) => order(one) - order(other))) {
      const { server, port, why } = await hold(listener);
      if (server) held.push(server);
      const rival = [...ports.keys()].find((other) => ports.get(other) === port);
      ports.set(listener, port);
      const fault = why === undefined ? undefined : faultOf(listener, why, rival, command);
      if (fault !== undefined) faults.add(fault);
    }
  } finally {
    for (const server of held) server.close();
  }
  if (faults.size > 0) throw new Error([...faults].join('\n'));
  return listeners.map((listener) => ports.get(listener) ?? listener.port);
}

interface Held {
  port: number;
  /** Undefined where it may not listen. */
  server?: Server;
  why?: string;
}

async function hold({ port: wanted, host }: Listener): Promise<Held> {
  for (;;) {
    const port = wanted === 0 ? anyPorts.first + randomInt(anyPorts.count) : wanted;
    const held = await listen(port, host);
    if (wanted !== 0 || held.why !== 'EADDRINUSE') return { port, ...held };
  }
}

/** Undefined where the listener may wait. */
function faultOf(
  { variable, port, host, waits = false }: Listener,
  why: string,
  rival: Listener | undefined,
  command: string,
): string | undefined {
  const another = (other: number): string => `Choose another: ${`${variable}=${other} ${command}`.trim()}`;
  if (why === 'EADDRINUSE' && rival) return `${variable} is ${port}, as ${rival.variable}: they must differ`;
  if (waits) return undefined;
  if (why === 'EADDRINUSE') return `port ${port} is taken by another program. ${another(port + 1)}`;
  if (why === 'EACCES') return `only root may open port ${port}. ${another(port + unprivileged)}`;
  return `HOST is ${JSON.stringify(host)}, ${noAddress}`;
}

/**
 * Throws where a setting, an IP address on which something is to listen later, is no address of this machine:
 * `variable` is its name. Called before anything is started.
 */
export async function requireOwnAddress(variable: string, host: string): Promise<void> {
  const { server, why } = await listen(0, host);
  server?.close();
  if (why !== undefined) throw new Error(`${variable} is ${JSON.stringify(host)}, ${noAddress}`);
}

const noAddress =
  'which is no address of this machine. With 127.0.0.1 only this machine can connect; with 0.0.0.0 all who reach any of its addresses can.';

/** Listens, or says why that is refused: by the code of the system's error. */
async function listen(port: number, host: string): Promise<Omit<Held, 'port'>> {
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen(port, host), 'listening');
    return { server };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && refusals.has(code)) return { why: code };
    throw error;
  }
}

/** Taken, not allowed, an address of another machine, a name that nobody knows or that cannot be asked for. */
const refusals = new Set(['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN']);
