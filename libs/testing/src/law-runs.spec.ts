import { beforeEach, expect, it } from '@jest/globals';
import { runs } from './law-runs.js';

// Whatever a spec sets is put back after its file.
beforeEach(() => {
  for (const name of ['ATOLL_TEST_ALL', 'ATOLL_LAWS_RUNS', 'ATOLL_LAWS_SEED'])
    Reflect.deleteProperty(process.env, name);
});

it('tries a law in CI as often as it says, and elsewhere a quarter as often, at least once', () => {
  process.env.ATOLL_TEST_ALL = '1';
  expect(runs(40)).toMatchObject({ numRuns: 40 });
  process.env.ATOLL_TEST_ALL = '';
  expect([40, 41, 3].map((all) => runs(all).numRuns)).toEqual([10, 11, 1]);
});

it('tries a law as often as it is told to, with the seed it is told', () => {
  process.env.ATOLL_LAWS_RUNS = '2000';
  process.env.ATOLL_LAWS_SEED = '7';
  expect(runs(40)).toMatchObject({ numRuns: 2000, seed: 7 });
});
