import { QueryCache, QueryClient, type Query } from '@tanstack/react-query';
import { asProblem, isOfRole, isPassing } from './problem.js';

const maxTries = 3;
const firstRestMs = 5_000;
const longestRestMs = 60_000;

/** Tabs that failed together ask again apart. */
const shareOfTab = Math.random();
/** How many failures a query had when it last succeeded. */
const failuresBefore = new WeakMap<object, number>();
/** Queries that were refused for the role of their caller, and have not succeeded since. */
const refused = new WeakSet<object>();

/**
 * How long a query rests until it is asked again by itself, in milliseconds: 5 to 7.5 s after it failed in a way that
 * passes, twice as long each time, up to a minute and a half, and no less than the platform says. False where it did
 * not fail so. `share`, from 0 to 1, is the place of the tab in such a span.
 */
export function restAfterFailure(query: Pick<Query, 'state'>, share = shareOfTab): number | false {
  const { error, errorUpdateCount } = query.state;
  if (error === null || !isPassing(asProblem(error))) return false;
  const failures = errorUpdateCount - (failuresBefore.get(query) ?? 0);
  const restMs = Math.min(longestRestMs, firstRestMs * 2 ** (failures - 1)) * (1 + share / 2);
  return Math.max(restMs, (asProblem(error).retryAfterSeconds ?? 0) * 1_000);
}

const queryCache = new QueryCache({
  onSuccess: (_, query) => {
    failuresBefore.set(query, query.state.errorUpdateCount);
    refused.delete(query);
  },
  onError: (error, query) => {
    // It is not shown as it was, nor offered for what can no longer be done with it.
    if (asProblem(error).code === 'not_found') query.setState({ data: undefined });
    if (!isOfRole(asProblem(error)) || refused.has(query)) return;
    refused.add(query);
    // Pages offer what the role allows. What is refused at once makes one call.
    void queryClient.invalidateQueries({ queryKey: ['profile'] }, { cancelRefetch: false });
  },
});

/**
 * Old data stays on the page during a refetch, and after one that fails, unless what was read is gone; only temporary
 * failures are retried.
 */
export const queryClient = new QueryClient({
  queryCache,
  defaultOptions: {
    queries: {
      // A browser that is offline fails the call, and the page says so; it would wait in silence otherwise.
      networkMode: 'always',
      refetchOnReconnect: true,
      refetchInterval: (query) => restAfterFailure(query),
      staleTime: 2_000,
      gcTime: 5 * 60_000,
      retry: (failures, error) => failures < maxTries && isPassing(asProblem(error)),
      retryDelay: (failures, error) =>
        (asProblem(error).retryAfterSeconds ?? 0) * 1_000 || Math.min(8_000, 500 * 2 ** failures),
      throwOnError: false,
    },
    // What a mutation answered may be a secret: it is gone with the dialog that showed it.
    mutations: { networkMode: 'always', retry: false, gcTime: 0 },
  },
});

/** How often pages ask again, in milliseconds. Hidden tabs do not ask. */
export const pollMs = { busy: 1_500, calm: 10_000, slow: 60_000 } as const;

/** The most rows of a page that the platform sends. */
export const mostOfPage = 100;

/**
 * How long a listing that is read page by page rests until it is read again, in milliseconds: `pageMs` for each of its
 * pages, so that a long one makes no more calls than a short one.
 */
export function restOfAll(pageMs: number, listing: { data: readonly unknown[] } | undefined): number {
  return pageMs * Math.max(1, Math.ceil((listing?.data.length ?? 0) / mostOfPage));
}
