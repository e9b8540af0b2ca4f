import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './server-folder.js';

/**
 * Below the range from which systems pick ports for outgoing connections and for listeners that take any port: none of
 * those takes a port before its listener does, nor while that is away.
 */
const ports = { first: 10_000, count: 11_000 };
/** The one among them that browsers and `fetch` refuse to call: "bad port" in WHATWG's Fetch standard. */
const refusedPort = 10_080;
/** Processes that ask at the same time begin apart. */
let asked = process.pid * 37;

/** A file for each port that was given away, with the number of the process that has it. */
const claims = join(tmpdir(), `atoll-ports-${process.getuid?.() ?? 'windows'}`);

/**
 * A port of loopback that nobody listens on at present. Another one at each call, and no process that asks here has it
 * while this one runs: what it is for may take long to listen. `from`: where to begin to look.
 */
export async function freePort(from?: number): Promise<number> {
  asked = from ?? asked;
  mkdirSync(claims, { recursive: true });
  for (;;) {
    const port = ports.first + (asked++ % ports.count);
    if (port !== refusedPort && isClaimed(port) && (await isFree(port))) return port;
  }
}

/**
 * Of two processes that find the claim of a dead one at the same moment both may have it; that is as rare as harmless.
 */
function isClaimed(port: number): boolean {
  const claim = join(claims, String(port));
  try {
    writeFileSync(claim, String(process.pid), { flag: 'wx' });
  } catch {
    if (isAlive(Number(readFileSync(claim, 'utf8')))) return false;
    writeFileSync(claim, String(process.pid));
  }
  return true;
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
