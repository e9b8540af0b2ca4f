import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorKinds } from './errors/error-kinds.js';
import { noteResponses } from './errors/begun-responses.js';
import { answerSocketError, refuseTunnel, type Noted } from './errors/socket-errors.js';
import { refuseUnroutable, type HookParts } from './requests/hooks.js';
import { originForm } from './http/path.js';
import { boundConnections } from './http/open-connections.js';
import { takeTurns } from './http/request-turns.js';
import { boundUnanswered } from './http/unanswered-requests.js';
import { requestId } from './requests/request-id.js';
import { declareRequestState } from './requests/request-state.js';

const maxBodyBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const maxHeaders = 1_000;
const requestTimeoutMs = 30_000;
const headTimeoutMs = 15_000;
/** How often Node looks for requests that take longer than that. */
const timeoutCheckMs = 5_000;

/**
 * Has one server: for `localhost`, also where no host is named, Fastify would open another one for each further address
 * of that name, without the bounds of the first.
 */
class OneServer extends FastifyAdapter {
  override listen(port: string | number, ...rest: [host?: string | (() => void), callback?: () => void]): void {
    const [host, callback] = typeof rest[0] === 'string' ? [rest[0], rest[1]] : ['localhost', rest[0]];
    super.listen(port, host === 'localhost' ? '127.0.0.1' : host, callback);
  }
}

/**
 * The HTTP server of a listener, with its bounds. `partsOf` is asked when a request needs them: the application is made
 * after its adapter. A request to change the protocol that `isUpgrade` does not take is answered as if it had not
 * asked.
 */
export function createAdapter(
  partsOf: () => HookParts,
  isUpgrade: (request: IncomingMessage) => boolean = () => false,
): FastifyAdapter {
  let known: HookParts | undefined;
  const parts = (): HookParts => (known ??= partsOf());
  const noted: Noted = (...refusal) => parts().answered.recordUnread(...refusal);
  const adapter = new OneServer({
    bodyLimit: maxBodyBytes,
    // A missing Host is refused by a hook, as a problem; Node's own refusal has no body.
    http: {
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false,
      headersTimeout: headTimeoutMs,
      connectionsCheckingInterval: timeoutCheckMs,
      shouldUpgradeCallback: isUpgrade,
    },
    requestTimeout: requestTimeoutMs,
    // Ids are checked by their own rules; a long one is no worse than a wrong one.
    routerOptions: { maxParamLength: maxHeaderBytes },
    // Open connections go on to be served while the server closes.
    return503OnClosing: false,
    skipMiddie: true,
    rewriteUrl: originForm,
    genReqId: requestId,
    clientErrorHandler: (error, socket) => answerSocketError(error, socket, noted, parts().unreadForm),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      void refuseUnroutable(parts(), error, request, reply),
  });
  const instance = adapter.getInstance();
  instance.server.maxHeadersCount = maxHeaders;
  // An expectation is not asked for (RFC 9110, 10.1.1): the request is answered as any other, instead of by Node's
  // bare 417.
  instance.server.on('checkExpectation', (request, response) => instance.server.emit('request', request, response));
  instance.server.on('connect', (_request: unknown, socket: Duplex) => refuseTunnel(socket, noted, parts().unreadForm));
  takeTurns(instance.server, () => parts().connections.trustedProxies);
  noteResponses(instance.server);
  boundUnanswered(instance.server, (peer) => noted(errorKinds.too_many_requests.status, randomUUID(), peer));
  boundConnections(instance.server, () => parts().connections);
  declareRequestState(instance);
  return adapter;
}
