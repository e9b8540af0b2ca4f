import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Authenticator } from '../authentication/authenticator.js';
import { pageLinks, paginationOf } from '../answers/page-links.js';
import { UnreadAnswers } from '../answers/unread-answers.js';
import { ProblemFilter } from '../errors/problem-filter.js';
import type { UnreadForm } from '../errors/socket-errors.js';
import { Answered } from '../health/answered.js';
import { Draining } from '../health/draining.js';
import { documentationHeaders } from '../openapi/documentation.js';
import { Admission } from './admission.js';
import { ignoreTypeOfNothing } from './body-parser.js';
import { OpenConnections } from '../http/open-connections.js';
import { pathOf } from '../http/path.js';
import { arrivedAtMs } from '../http/request-turns.js';
import { requireHost } from './strictness.js';
import { refuseRemoved, unmatchedRoute } from './unmatched-route.js';

const documentation = /^\/api\/(?:docs(?:\/|$)|openapi\.json$)/;

/** What the hooks of a listener stand on. */
export interface HookParts {
  admission: Admission;
  authenticator: Authenticator;
  answered: Answered;
  connections: OpenConnections;
  draining: Draining;
  filter: ProblemFilter;
  unread: UnreadAnswers;
  /** Throws the refusal of a request for which there is no route, or no route any more. */
  refuseUnmatched: (request: FastifyRequest, reply: FastifyReply) => void;
  /** That of problems unless given. */
  unreadForm?: UnreadForm;
}

export function hookPartsOf(app: INestApplication): HookParts {
  return {
    admission: app.get(Admission),
    authenticator: app.get(Authenticator),
    answered: app.get(Answered),
    connections: app.get(OpenConnections),
    draining: app.get(Draining),
    filter: app.get(ProblemFilter),
    unread: app.get(UnreadAnswers),
    refuseUnmatched: (request, reply) => {
      refuseRemoved(request);
      const refusal = unmatchedRoute(request, reply);
      if (refusal) throw refusal;
    },
  };
}

/**
 * What happens to every request besides its route, in order. The routes come after, so that the hooks hold for each of
 * them.
 */
export function installHooks(instance: FastifyInstance, parts: HookParts): void {
  const { admission, authenticator, draining, unread } = parts;

  instance.addHook('onRoute', (route) => {
    if (documentation.test(route.url)) route.config = { ...route.config, public: true };
    const { maxBodyBytes } = route.config ?? {};
    if (maxBodyBytes !== undefined) route.bodyLimit = maxBodyBytes;
  });

  instance.addHook('onRequest', async (request, reply) => {
    const sinceMs = recordOnceOver(parts, request, reply);
    setCommonHeaders(request, reply);
    ignoreTypeOfNothing(request);
    await admission.admit(request, reply);
    request.admissionMs = performance.now() - sinceMs;
    parts.refuseUnmatched(request, reply);
    requireHost(request);
  });

  instance.addHook('preSerialization', (request, reply, payload, done) => {
    const { firstPage, allWithoutLimit } = request.routeOptions.config;
    const isAll = allWithoutLimit === true && (request.query as { limit?: number }).limit === undefined;
    const pagination = firstPage === undefined || isAll ? undefined : paginationOf(payload);
    if (pagination) reply.header('link', pageLinks(request.raw.url ?? '', pagination, firstPage ?? 0));
    done(null, payload);
  });

  instance.addHook('onSend', (request, reply, payload, done) => {
    // What a call changes about its own caller holds for the next call. Whether it did is not known here.
    const { caller, callContext, routeOptions } = request;
    if (caller && callContext && routeOptions.config.changesCaller) authenticator.forget(caller.userId);
    if (draining.begun) reply.header('connection', 'close');
    done(null, unread.send(request, reply, payload));
  });
}

/**
 * Fastify hands over what its router cannot read, before any hook: the same order of refusal holds, and the same record
 * is kept.
 */
export async function refuseUnroutable(
  parts: HookParts,
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  recordOnceOver(parts, request, reply);
  setCommonHeaders(request, reply);
  parts.unread.cutOffUnlessRead(reply);
  const refusal = await parts.admission.admit(request, reply).then(
    () => error,
    (refused: unknown) => refused,
  );
  parts.filter.answer(request, reply, refusal);
}

/**
 * A response closes in every case; it does not finish, and Fastify has no `onResponse`, where its client hung up.
 * Returns when the request arrived, by `performance.now()`.
 */
function recordOnceOver({ answered }: HookParts, request: FastifyRequest, reply: FastifyReply): number {
  const sinceMs = arrivedAtMs(request.raw);
  let isWhole = false;
  reply.raw.once('finish', () => (isWhole = true));
  reply.raw.once('close', () => answered.record(request, reply, { isWhole, tookMs: performance.now() - sinceMs }));
  return sinceMs;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  // Answers to callers are not for caches; the documentation may be kept.
  if (documentation.test(pathOf(request))) reply.headers(documentationHeaders);
  else reply.header('cache-control', 'no-store');
}
