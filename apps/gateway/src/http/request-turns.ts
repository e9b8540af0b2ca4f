import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { networkOf, type AddressRange } from '@atoll/contracts';
import { Turns } from '@atoll/waiting';
import { clientAddress } from './client-address.js';

/** Of requests that are begun in one turn of the event loop. */
const budgetMs = 1;

const arrivals = new WeakMap<IncomingMessage, number>();

/** When a request arrived, by `performance.now()`: before it had its turn. */
export function arrivedAtMs(request: IncomingMessage): number {
  return arrivals.get(request) ?? performance.now();
}

/**
 * Begins the requests of `server` a few in a turn of the event loop, and networks take turns: whoever sends many, over
 * however many connections, delays others by a few. Node accepts one connection in a turn, so that each would wait for
 * all requests that have arrived; while connections come, some are accepted first. A request whose client has gone
 * before its turn is not begun.
 */
export function takeTurns(
  server: Server,
  trustedProxies: () => readonly AddressRange[],
  turns = new Turns(budgetMs),
): void {
  const begin = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners('request');
  server.on('connection', ({ destroyed }) => destroyed || turns.pass());
  server.on('request', (request, response) => {
    arrivals.set(request, performance.now());
    const forwarded = request.headers['x-forwarded-for']?.toString();
    const address = clientAddress(request.socket.remoteAddress, forwarded, trustedProxies());
    const withdraw = turns.queue(networkOf(address), () => {
      if (!request.socket.destroyed) begin.forEach((each) => each(request, response));
    });
    request.once('close', withdraw);
  });
}
