import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of those takes a port
 * before its listener does, nor while that is away.
 */
const ports = { first: 10_000, count: 11_000 };
/** Processes that ask at the same time begin apart. */
let asked = process.pid * 37;

/** A port of loopback that nobody listens on at present. Another one at each call. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.first + (asked++ % ports.count);
    if (await isFree(port)) return port;
  }
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
