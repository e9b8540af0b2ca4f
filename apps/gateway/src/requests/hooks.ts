import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Authenticator } from '../authentication/authenticator.js';
import { pageLinks, paginationOf } from '../answers/page-links.js';
import { ProblemFilter } from '../errors/problem-filter.js';
import { Answered } from '../health/answered.js';
import { Draining } from '../health/draining.js';
import { documentationHeaders } from '../openapi/documentation.js';
import { Admission } from './admission.js';
import { ignoreTypeOfNothing } from './body-parser.js';
import { pathOf } from './path.js';
import { requireHost } from './strictness.js';
import { refuseRemoved, unmatchedRoute } from './unmatched-route.js';

const documentation = /^\/api\/(?:docs(?:\/|$)|openapi\.json$)/;

const longText = 64 * 1024;

/** What happens to every request besides its route, in order. The routes come after, so that the hooks hold for each of them. */
export function installHooks(app: INestApplication, instance: FastifyInstance): void {
  const admission = app.get(Admission);
  const authenticator = app.get(Authenticator);
  const answered = app.get(Answered);
  const draining = app.get(Draining);

  instance.addHook('onRoute', (route) => {
    if (documentation.test(route.url)) route.config = { ...route.config, public: true };
    const { maxBodyBytes } = route.config ?? {};
    if (maxBodyBytes !== undefined) route.bodyLimit = maxBodyBytes;
  });

  instance.addHook('onRequest', async (request, reply) => {
    setCommonHeaders(request, reply);
    ignoreTypeOfNothing(request);
    await admission.admit(request, reply);
    refuseRemoved(request);
    if (request.is404) throw unmatchedRoute(request, reply);
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
    // As text, Node would join it to the headers and write both anew; bytes go out as they are.
    done(null, typeof payload === 'string' && payload.length > longText ? Buffer.from(payload) : payload);
  });

  instance.addHook('onResponse', (request, reply, done) => {
    answered.record(request, reply);
    done();
  });
}

/** Fastify hands over what its router cannot read, before any hook: the same order of refusal holds, and the same record is kept. */
export async function refuseUnroutable(app: INestApplication, error: Error, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  setCommonHeaders(request, reply);
  const answered = app.get(Answered);
  reply.raw.once('finish', () => answered.record(request, reply));
  const refusal = await app
    .get(Admission)
    .admit(request, reply)
    .then(
      () => error,
      (refused: unknown) => refused,
    );
  app.get(ProblemFilter).answer(request, reply, refusal);
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  // Answers to callers are not for caches; the documentation may be kept.
  if (documentation.test(pathOf(request))) reply.headers(documentationHeaders);
  else reply.header('cache-control', 'no-store');
}
