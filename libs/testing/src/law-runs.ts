import type { Parameters } from 'fast-check';

/**
 * How often a law is tried: `runs` in the ordinary tests; `ATOLL_LAWS_RUNS` for a longer run, and `ATOLL_LAWS_SEED` to
 * repeat one.
 */
export function runs(ordinary: number): Parameters<unknown> {
  const { ATOLL_LAWS_RUNS, ATOLL_LAWS_SEED } = process.env;
  return {
    numRuns: ATOLL_LAWS_RUNS ? Number(ATOLL_LAWS_RUNS) : ordinary,
    ...(ATOLL_LAWS_SEED && { seed: Number(ATOLL_LAWS_SEED) }),
    endOnFailure: false,
  };
}
