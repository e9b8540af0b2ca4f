import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { innermostAddress, isMetadataAddress } from '@atoll/contracts';
import { sshError, toSshError } from './ssh-error.js';

export interface DialOptions {
  /** Whether loopback and link-local addresses may be dialled: for tests and laptops. */
  readonly allowLoopback: boolean;
  /**
   * Milliseconds for each of: a look-up of the name, a connection to an address, and the key exchange of SSH. 5,000
   * unless given.
   */
  readonly connectMs?: number;
}

const defaultConnectMs = 5_000;

/**
 * Whether a host may be dialled at this address; a metadata address never. IPv4 inside of IPv6 counts as what it leads
 * to.
 */
export function isDiallable(address: string, { allowLoopback }: DialOptions): boolean {
  const inner = innermostAddress(address);
  if (inner === null || isMetadataAddress(inner)) return false;
  const range = inner.range();
  if (range === 'loopback' || range === 'linkLocal') return allowLoopback;
  return !['unspecified', 'broadcast', 'multicast', 'reserved', 'discard', 'teredo'].includes(range);
}

/**
 * Connects to a host. Its name is resolved here, and the connection goes to an address that was checked, so that a name
 * which changes between two look-ups gains nothing; one forbidden address among several refuses the host. Throws
 * `SshError`.
 */
export async function dial(host: string, port: number, options: DialOptions, signal: AbortSignal): Promise<Socket> {
  const addresses = await connecting(resolve(host), options, signal);
  if (addresses.length === 0) throw sshError('name');
  if (!addresses.every((address) => isDiallable(address, options))) throw sshError('address_forbidden');
  let failure: unknown;
  for (const address of addresses) {
    try {
      return await open(address, port, options, signal);
    } catch (error) {
      failure = error;
      if (signal.aborted) break;
    }
  }
  throw toSshError(failure);
}

async function resolve(host: string): Promise<string[]> {
  if (isIP(host)) return [host];
  try {
    return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
  } catch (error) {
    throw sshError('name', error);
  }
}

function open(address: string, port: number, options: DialOptions, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: address, port });
  // Without a listener an error ends the process; whoever uses the socket adds their own.
  socket.on('error', () => undefined);
  const connected = new Promise<Socket>((resolve, reject) => {
    socket.once('connect', () => resolve(socket)).once('error', reject);
  });
  return connecting(connected, options, signal).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
}

/**
 * As `raced`, for a step on the way to a session: a host that says nothing is left long before the signal's time is
 * over.
 */
export function connecting<T>(
  promise: Promise<T>,
  { connectMs = defaultConnectMs }: DialOptions,
  signal: AbortSignal,
): Promise<T> {
  return raced(promise, signal, connectMs);
}

/** What the promise gives, or `timeout` once the signal is aborted, or after so many milliseconds. */
export async function raced<T>(promise: Promise<T>, signal: AbortSignal, limitMs?: number): Promise<T> {
  let end: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(sshError('timeout', signal.reason));
  });
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  const timer = limitMs === undefined ? undefined : setTimeout(end, limitMs);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    promise.catch(() => undefined);
  }
}
