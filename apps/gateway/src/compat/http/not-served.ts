import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../../http/path.js';
import { unmatchedRoute } from '../../requests/unmatched-route.js';

/** An old call that this mount does not serve: 501, since 404 would mean that the object does not exist. */
export class NotServed extends Error {}

/** By path prefix: the alternative to a call that is not served. */
const alternatives: readonly (readonly [pattern: RegExp, sentence: string])[] = [
  [/^\/instances\/unified/, 'Use GET /api/pods and GET /api/instance of the main API.'],
  [/^\/instance\//, 'Use the paths under /api/pods, /api/vm and /api/baremetal of the main API.'],
  [/^\/pods\//, 'Use the paths under /api/pods of the main API.'],
  [/^\/gpuaas\/pool\/reimage$/, 'Use PUT /api/pods/{pod_name} with an image on the main API.'],
  [/^\/shared-volumes/, 'Use the paths under /api/shared-volumes of the main API.'],
  [/^\/gpuaas\//, 'Use the paths under /api/gpuaas of the main API.'],
  [
    /^\/(?:team|workspace)-billing/,
    'Use the paths under /api/team-billing and /api/workspace-billing of the main API.',
  ],
];

const otherwise = 'docs/compatibility.md lists the calls that are served; everything else is on the main API.';

/**
 * Throws for a request that matches no route, or only with an empty segment: 501 with the alternative, or 405 if the
 * path supports other methods.
 */
export function refuseNotServed(request: FastifyRequest, reply: FastifyReply): void {
  if (!request.is404 && !hasEmptySegment(request)) return;
  const refusal = unmatchedRoute(request, reply);
  if (request.is404 && refusal?.code === 'method_not_allowed') throw refusal;
  const path = pathOf(request).replace(/^\/api/, '');
  const alternative = alternatives.find(([pattern]) => pattern.test(path))?.[1] ?? otherwise;
  throw new NotServed(`The compatibility mount does not serve this call. ${alternative}`);
}

/** A route takes an empty segment for an id, of which no object can be. */
function hasEmptySegment({ params }: FastifyRequest): boolean {
  return Object.entries(params ?? {}).some(([name, value]) => name !== '*' && value === '');
}
