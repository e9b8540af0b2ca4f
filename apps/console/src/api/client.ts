import { NoSession, randomId, RefreshFailed } from '@atoll/session-tab';
import createClient from 'openapi-fetch';
import { fetchAsCaller } from '../session/session.js';
import type { components, paths } from './generated/openapi.js';
import { asProblem, Problem, problemOf, problemOfCall, unreachable } from './problem.js';

export type Schemas = components['schemas'];

/** Calls the platform that served this page: typed by its OpenAPI document. */
export const api = createClient<paths>({
  baseUrl: location.origin,
  cache: 'no-store',
  credentials: 'same-origin',
  fetch: fetchAsCaller,
});

api.use({
  onError: ({ error }) => {
    if (error instanceof NoSession)
      return new Problem(401, 'unauthenticated', 'Your session has ended. Log in again.', null);
    return error instanceof RefreshFailed ? asProblem(error) : unreachable();
  },
});

interface Answer<Body> {
  data?: Body;
  error?: unknown;
  response: Response;
}

/** The body of a success; throws a `Problem` for anything else. */
export async function answerOf<Body>(call: Promise<Answer<Body>>): Promise<Body> {
  const { data, error, response } = await call.catch((failure: unknown) => {
    throw problemOfCall(failure);
  });
  // Each success of the platform but 204 has a body: without one, something else has answered.
  if (response.ok && (data !== undefined || response.status === 204)) return data as Body;
  throw problemOf(response, error);
}

/**
 * An object that is read by its own id, for a page of its team. Throws `not_found` for one of another team, as the
 * platform does for one that is unknown: a user of both teams may have another role there.
 */
export async function ofTeam<Found extends { team_id: string }>(
  teamId: string,
  what: string,
  reading: Promise<Found>,
): Promise<Found> {
  const found = await reading;
  if (found.team_id === teamId) return found;
  throw new Problem(404, 'not_found', `No such ${what}.`, null);
}

/** The header with which a call that is sent again after a lost answer is still one call. */
export type IdempotencyHeader = { 'Idempotency-Key': string };

/** A new one, for one call of a form. */
export function idempotencyKey(): IdempotencyHeader {
  return { 'Idempotency-Key': randomId() };
}
