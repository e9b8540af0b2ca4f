import { createHash } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CallContext, Idempotency, UserCaller } from '@atoll/contracts';
import type { FieldError } from '@atoll/errors';
import { decodedPath, pathOf } from '../http/path.js';
import { traceparentOf } from './request-id.js';

/**
 * The context that accompanies the call on the bus. Adds a fault for an invalid idempotency key, if the route keeps
 * answers under such keys.
 */
export function callContext(
  request: FastifyRequest,
  caller: UserCaller,
  deadlineMs: number,
  faults: FieldError[],
): CallContext {
  const traceparent = traceparentOf(request.raw);
  const keepsAnswer = request.method === 'POST' && !request.routeOptions.config.keepsNoAnswer;
  const idempotency = keepsAnswer ? idempotencyOf(request, caller, faults) : undefined;
  return {
    requestId: request.id,
    deadlineAtMs: Date.now() + deadlineMs,
    // An object of this request alone, by which all of its calls are known as of one request.
    caller: { ...caller },
    ...(traceparent && { traceparent }),
    ...(idempotency && { idempotency }),
  };
}

/**
 * How long the operation of a request may still take, in milliseconds: as long as its route says, `deadlineMs` at
 * least, without what its admission took. The time in which its body came counts for nothing.
 */
export function timeLeftMs({ routeOptions, admissionMs }: FastifyRequest, deadlineMs: number): number {
  return Math.max(0, Math.max(deadlineMs, routeOptions.config.deadlineMs ?? 0) - admissionMs);
}

/** The context of the call that a handler makes. */
export const Context = createParamDecorator((_data: unknown, context: ExecutionContext): CallContext => {
  const { callContext: prepared } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!prepared) throw new Error('A public route has no caller.');
  return prepared;
});

const visibleAscii = /^[\x21-\x7e]{1,255}$/;

function idempotencyOf(request: FastifyRequest, caller: UserCaller, faults: FieldError[]): Idempotency | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !visibleAscii.test(key)) {
    faults.push({
      path: 'Idempotency-Key',
      code: 'idempotencyKey',
      message: 'Idempotency-Key must be 1 to 255 visible ASCII characters',
    });
    return undefined;
  }
  const path = pathOf(request);
  const team = caller.scope === 'membership' ? (caller.teams[0]?.teamId ?? '') : '';
  // One path has one spelling here, and ids are told apart by no upper case.
  const spelt = decodedPath(path).toLowerCase();
  return {
    key,
    scope: `user:${caller.userId} team:${team} ${request.method} ${spelt}`,
    fingerprint: fingerprintOf(request, path),
  };
}

/** Of the body as it came and, since a query is part of what is asked, of the query too where there is one. */
function fingerprintOf(request: FastifyRequest, path: string): string {
  const body = request.bodyDigest ?? digestOf('');
  const query = (request.raw.url ?? '').slice(path.length);
  return query === '' ? body : digestOf(`${query}\n${body}`);
}

export function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
