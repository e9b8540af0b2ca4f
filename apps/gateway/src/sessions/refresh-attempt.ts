import { ApiHeader } from '@nestjs/swagger';
import { refreshAttemptForm, refreshAttemptHint, type RefreshFrom } from '@atoll/contracts/teams';
import { invalidField } from '@atoll/errors';
import type { FastifyRequest } from 'fastify';

const name = 'Refresh-Attempt';

/** For the OpenAPI document: a route that takes the id of an attempt. */
export function TakesRefreshAttempt(): MethodDecorator {
  return ApiHeader({
    name,
    required: false,
    description:
      `Random id that the client chooses for this refresh: ${refreshAttemptHint}. If no response arrives, ` +
      'send the same cookie with the same id again: the response is the one that was lost. ' +
      'Without an id the same cookie is answered again for 10 seconds.',
    schema: { type: 'string', pattern: refreshAttemptForm.source },
    example: '7f1b0c52a9e84d6f93c1d20e5b6a48f7',
  });
}

/** The id of the attempt that a request names. Throws `invalid_input` for what cannot be one. */
export function refreshAttemptOf({ headers }: FastifyRequest): Pick<RefreshFrom, 'attempt'> {
  const attempt = headers['refresh-attempt'];
  if (attempt === undefined) return {};
  if (typeof attempt !== 'string' || !refreshAttemptForm.test(attempt))
    throw invalidField(name, 'refreshAttempt', `must be ${refreshAttemptHint}`);
  return { attempt };
}
