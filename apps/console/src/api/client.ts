import createClient from 'openapi-fetch';
import { authorization, sessionExpired } from '../session/session.js';
import type { components, paths } from './generated/openapi.js';
import { problemOf, unreachable } from './problem.js';

export type Schemas = components['schemas'];

/** Calls the platform that served this page: typed by its OpenAPI document. */
export const api = createClient<paths>({ baseUrl: location.origin, cache: 'no-store', credentials: 'same-origin' });

api.use({
  onRequest({ request }) {
    const value = authorization();
    if (value !== undefined && !request.headers.has('authorization')) request.headers.set('authorization', value);
  },
  onError: () => unreachable(),
});

interface Answer<Body> {
  data?: Body;
  error?: unknown;
  response: Response;
}

/** The body of a success; throws a `Problem` for anything else. A 401 ends the session of this tab. */
export async function answerOf<Body>(call: Promise<Answer<Body>>): Promise<Body> {
  const { data, error, response } = await call;
  if (response.ok) return data as Body;
  const problem = problemOf(response, error);
  if (response.status === 401) sessionExpired();
  throw problem;
}

/** Makes one call of a form: sent again after a lost answer, it is still one. */
export function idempotencyKey(): { 'Idempotency-Key': string } {
  return { 'Idempotency-Key': crypto.randomUUID() };
}
