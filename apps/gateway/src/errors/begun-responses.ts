import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Responses of each connection that are not over, the oldest first; see `isOver`. */
const responses = new WeakMap<Duplex, ServerResponse[]>();

/** Notes the responses of each connection of `server`, for `roomFor`. */
export function noteResponses(server: Server): void {
  server.prependListener('request', ({ socket }, response) => {
    // Those of a long response are ten with what others note of it; Node warns of an eleventh, as of a leak.
    response.setMaxListeners(20);
    responses.set(socket, [...openOn(socket), response]);
    // An idle connection keeps none in memory.
    response.once('finish', () => responses.set(socket, openOn(socket)));
  });
}

/** Whether the client has sent all of the request and has been sent all of the response. */
function isOver({ writableFinished, req }: ServerResponse): boolean {
  return writableFinished && req.complete;
}

function openOn(socket: Duplex): ServerResponse[] {
  return (responses.get(socket) ?? []).filter((response) => !isOver(response));
}

/**
 * What else can be written to a connection so that its client takes it for what it is: a `response`, also in place of
 * one that has not begun; `nothing`, as the request that the client is sending has its response; or `no end` either,
 * as a response is under way.
 */
export function roomFor(socket: Duplex): 'response' | 'nothing' | 'no end' {
  const [oldest] = openOn(socket);
  if (!oldest?.headersSent) return 'response';
  if (!oldest.writableEnded) return 'no end';
  return oldest.req.complete ? 'response' : 'nothing';
}
