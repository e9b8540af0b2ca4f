import type { AppError } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../http/path.js';
import { problemHeaders, toProblem } from './problem.js';

/** Answers a request with a problem. Headers set before (`Allow`, `RateLimit`) stay. */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, error: AppError, extra: object = {}): void {
  const problem = toProblem(error, { instance: pathOf(request), requestId: request.id });
  reply
    .code(problem.status)
    .headers(problemHeaders(error))
    .send(JSON.stringify({ ...problem, ...extra }));
}
