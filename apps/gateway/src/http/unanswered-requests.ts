import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Requests of one connection that wait for their answers at once. Clients that send the next one before they have the
 * answer are rare (RFC 9112, 9.3.2), and none of them sends so many.
 */
const maxUnanswered = 16;

/** What Node gives its parser: called with each request, and with 2 the parser reads no further. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming: () => number } | null;
}

/**
 * Closes a connection on which more requests wait for their answers, and calls `onClosed` with the address of its peer.
 * Node begins all that have arrived in one piece in the same turn, some 2,000 in 64 KiB, and everybody else waits
 * meanwhile.
 */
export function boundUnanswered(server: Server, onClosed: (peer: string | undefined) => void): void {
  const unanswered = new WeakMap<Socket, number>();
  const count = (socket: Socket, more: 1 | -1): number => {
    const sum = (unanswered.get(socket) ?? 0) + more;
    unanswered.set(socket, sum);
    return sum;
  };
  server.prependListener('request', ({ socket }, response) => {
    response.once('close', () => count(socket, -1));
    if (count(socket, 1) <= maxUnanswered || socket.destroyed) return;
    const { remoteAddress } = socket;
    socket.destroy();
    stopReading(socket);
    onClosed(remoteAddress);
  });
}

/** Node would otherwise make an object of each further request that has arrived, which takes longer than reading it. */
function stopReading({ parser }: ParsedSocket): void {
  if (parser) parser.onIncoming = () => 2;
}
