import { NoSession, randomId, RefreshFailed } from '@atoll/session-tab';
import createClient from 'openapi-fetch';
import { fetchAsCaller } from '../session/session.js';
import type { components, paths } from './generated/openapi.js';
import { asProblem, Problem, problemOf, problemOfCall, unreachable } from './problem.js';
import { mostOfPage } from './query-client.js';

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

interface PageOf<Row> {
  data: Row[];
  /** Left out where a listing is answered whole. */
  pagination?: { total: number };
}

type ReadPage<Row> = (query: { page: number; limit: number }) => Promise<PageOf<Row>>;

const mostRefusals = 3;

/**
 * A page of a listing. A later one that is refused for the number of calls is asked again when the platform says: a try
 * that begins at the first page would be refused at the same place.
 */
async function pageOf<Row>(read: ReadPage<Row>, page: number): Promise<PageOf<Row>> {
  for (let refusals = 0; ; refusals += 1) {
    try {
      return await read({ page, limit: mostOfPage });
    } catch (error) {
      const { status, retryAfterSeconds } = asProblem(error);
      if (page === 1 || status !== 429 || refusals === mostRefusals) throw error;
      await new Promise((resolve) => setTimeout(resolve, (retryAfterSeconds ?? 1) * 1_000));
    }
  }
}

/** All rows of a listing that counts its pages from 1, page by page. */
export async function everyRow<Row>(read: ReadPage<Row>): Promise<{ data: Row[] }> {
  const rows: Row[] = [];
  for (let page = 1; ; page += 1) {
    const { data, pagination } = await pageOf(read, page);
    rows.push(...data);
    if (rows.length >= (pagination?.total ?? 0) || data.length === 0) return { data: rows };
  }
}

/** What counts as recent, in milliseconds: a week. */
export const recentMs = 7 * 86_400_000;

/**
 * The recent rows of a listing whose oldest come first, and some of the others: pages from the end, until one begins
 * with a row that is not recent.
 */
export async function recentRows<Row extends { created_at: string }>(read: ReadPage<Row>): Promise<{ data: Row[] }> {
  const first = await pageOf(read, 1);
  const rows: Row[] = [];
  for (let page = Math.ceil((first.pagination?.total ?? 0) / mostOfPage); page > 1; page -= 1) {
    const { data } = await pageOf(read, page);
    rows.unshift(...data);
    if (data[0] && Date.parse(data[0].created_at) < Date.now() - recentMs) return { data: rows };
  }
  return { data: [...first.data, ...rows] };
}

/** The header with which a call that is sent again after a lost answer is still one call. */
export type IdempotencyHeader = { 'Idempotency-Key': string };

/** A new one, for one call of a form. */
export function idempotencyKey(): IdempotencyHeader {
  return { 'Idempotency-Key': randomId() };
}
