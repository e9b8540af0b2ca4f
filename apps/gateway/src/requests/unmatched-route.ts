import { AppError } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../http/path.js';
import { replacementOf } from '../http/removed-paths.js';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A path that was removed is gone (410), also where a route that came later would take a segment of it for an id. */
export function refuseRemoved(request: FastifyRequest): void {
  // Some of the other methods have a route that looks like it: a subscription is changed by its id.
  if (request.method !== 'GET' && request.method !== 'HEAD' && !request.is404) return;
  const replacement = replacementOf(pathOf(request));
  if (replacement !== undefined) throw new AppError('gone', `This path was removed. Use ${replacement}.`);
}

/** Why no route was found: the path exists under other methods (405, with `Allow`), or is unknown (404). */
export function unmatchedRoute(request: FastifyRequest, reply: FastifyReply): AppError {
  const path = pathOf(request);
  const allowed = methods.filter((method) => request.server.findRoute({ method, url: path }) !== null);
  if (allowed.length === 0 || allowed.includes(request.method))
    return new AppError('not_found', 'There is nothing at this path.');
  reply.header('allow', allowed.join(', '));
  return new AppError('method_not_allowed', `This path supports only ${allowed.join(', ')}.`);
}
