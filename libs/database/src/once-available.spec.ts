import { afterEach, expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { onceAvailable } from './once-available.js';

afterEach(() => void jest.restoreAllMocks());

const busy = () => new AppError('unavailable', 'The database is unavailable.');

/** Fails so often, then gives 7. */
function failing(error: () => unknown, times: number) {
  const work = {
    calls: 0,
    run: async () => {
      work.calls += 1;
      if (work.calls <= times) throw error();
      return Promise.resolve(7);
    },
  };
  return work;
}

it('does the work again while the database does not answer', async () => {
  const work = failing(busy, 2);
  expect(await onceAvailable(work.run)).toBe(7);
  expect(work.calls).toBe(3);
});

it('takes a refused connection for a database that does not answer', async () => {
  const work = failing(() => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }), 1);
  expect(await onceAvailable(work.run)).toBe(7);
});

it('throws anything else at once', async () => {
  const work = failing(() => new AppError('conflict', 'It is there.'), 1);
  await expect(onceAvailable(work.run)).rejects.toThrow('It is there.');
  expect(work.calls).toBe(1);
});

it('does not give up because the clock is set while it waits, as after a boot', async () => {
  const nowMs = Date.now();
  const work = failing(busy, 2);
  jest.spyOn(Date, 'now').mockImplementation(() => (work.calls < 1 ? nowMs : nowMs + 3_600_000));
  expect(await onceAvailable(work.run)).toBe(7);
});

it('gives up when its patience ends', async () => {
  const nowMs = performance.now();
  const work = failing(busy, Infinity);
  jest.spyOn(performance, 'now').mockImplementation(() => (work.calls < 2 ? nowMs : nowMs + 250));
  await expect(onceAvailable(work.run, 250)).rejects.toThrow('The database is unavailable');
  expect(work.calls).toBe(2);
});
