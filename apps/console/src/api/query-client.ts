import { QueryClient } from '@tanstack/react-query';
import { asProblem, isPassing } from './problem.js';

const maxTries = 3;

/** Old data stays on the page during a refetch; only temporary failures are retried. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A browser that is offline fails the call, and the page says so; it would wait in silence otherwise.
      networkMode: 'always',
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
