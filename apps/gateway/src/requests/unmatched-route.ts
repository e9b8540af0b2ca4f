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

/**
 * Why a request has no route, undefined where it has: its path exists under other methods (405, with `Allow`), or is
 * unknown (404). A route does not count where it would read a fixed word of another route as an id: `GET /pods/action`
 * is 405, since `action` belongs to `POST /pods/action`.
 */
export function unmatchedRoute(request: FastifyRequest, reply: FastifyReply): AppError | undefined {
  const parameters = (route: { params: unknown } | null): number =>
    route ? Object.keys(route.params as object).length : Infinity;
  const own = request.is404 ? Infinity : parameters(request);
  if (own === 0) return undefined;
  const url = pathOf(request);
  const found = methods.map((method) => ({ method, has: parameters(request.server.findRoute({ method, url })) }));
  const fewest = Math.min(...found.map(({ has }) => has));
  if (own === fewest && own < Infinity) return undefined;
  const allowed = found.flatMap(({ method, has }) => (has === fewest && has < Infinity ? [method] : []));
  if (allowed.length === 0 || allowed.includes(request.method))
    return new AppError('not_found', 'There is nothing at this path.');
  reply.header('allow', allowed.join(', '));
  return new AppError('method_not_allowed', `This path supports only ${allowed.join(', ')}.`);
}
