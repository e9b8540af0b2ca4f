import type { Parameters } from 'fast-check';

/**
 * How often a law is tried. CI (`ATOLL_TEST_ALL=1`) and `npm run mutants` make `all` runs, any other run of the specs
 * a quarter of them: each begins with a seed of its own, so four runs on a developer's machine try what one of CI does.
 * `ATOLL_LAWS_RUNS` makes another number, and `ATOLL_LAWS_SEED` repeats a run.
 */
export function runs(all: number): Parameters<unknown> {
  const { ATOLL_LAWS_RUNS, ATOLL_LAWS_SEED, ATOLL_TEST_ALL } = process.env;
  const ordinary = ATOLL_TEST_ALL === '1' ? all : Math.ceil(all / 4);
  return {
    numRuns: ATOLL_LAWS_RUNS ? Number(ATOLL_LAWS_RUNS) : ordinary,
    ...(ATOLL_LAWS_SEED && { seed: Number(ATOLL_LAWS_SEED) }),
    endOnFailure: false,
  };
}
