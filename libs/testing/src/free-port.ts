import { once } from 'node:events';
import { createServer } from 'node:net';
import { claim } from './claims.js';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of
 * those takes a port before its listener does, nor while that is away.
 */
const ports = { first: 10_000, count: 11_000 };
/** The one among them that browsers and `fetch` refuse to call: "bad port" in WHATWG's Fetch standard. */
const refusedPort = 10_080;
/** Processes that ask at the same time begin apart. */
let asked = process.pid * 37;

/** Above those. */
const ranges = { first: 21_000, size: 100, count: 90 };

/**
 * A port of loopback that nobody listens on at present. Another one at each call, and no process that asks here has it
 * while this one runs: what it is for may take long to listen. `from`: where to begin to look.
 */
export async function freePort(from?: number): Promise<number> {
  asked = from ?? asked;
  for (;;) {
    const port = ports.first + (asked++ % ports.count);
    if (port !== refusedPort && claim(String(port)) === 'now' && (await isFree(port))) return port;
  }
}

/**
 * A hundred ports, `21000-21099`, that are never those of `freePort`, for what picks its ports itself: no process that
 * asks here has one of them while this one runs. The same at each call. `from`: where to begin to look.
 */
export function ownPorts(from = process.pid): string {
  for (let at = from; at < from + ranges.count; at += 1) {
    const first = ranges.first + (at % ranges.count) * ranges.size;
    const range = `${first}-${first + ranges.size - 1}`;
    if (claim(range) !== 'another') return range;
  }
  throw new Error('More processes ask for ports of their own than there are.');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen({ port, host: '127.0.0.1', exclusive: true });
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
