import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Removals } from './removals.js';

const tenMinutes = 600_000;
/** What each batch comes to: whether there may be more, or a failure. */
let batches: (boolean | Error)[];
let failures: unknown[];
let removed: number;
let removals: Removals;

beforeEach(() => {
  jest.useFakeTimers();
  [batches, failures, removed] = [[], [], 0];
  const removeSome = () => {
    removed += 1;
    const batch = batches.shift() ?? false;
    return batch instanceof Error ? Promise.reject(batch) : Promise.resolve(batch);
  };
  removals = new Removals(removeSome, (error) => failures.push(error));
  removals.start();
});
afterEach(async () => {
  await removals.stop();
  jest.useRealTimers();
});

it('removes batch after batch while there is more, and then waits for ten minutes', async () => {
  batches = [true, true, false];
  await jest.advanceTimersByTimeAsync(tenMinutes - 1);
  expect(removed).toBe(0);
  await jest.advanceTimersByTimeAsync(1 + 1_000);
  expect(removed).toBe(3);
  await jest.advanceTimersByTimeAsync(tenMinutes);
  expect(removed).toBe(4);
});

it('tells of a batch that failed, and tries again after ten minutes', async () => {
  batches = [new Error('No database.'), true];
  await jest.advanceTimersByTimeAsync(tenMinutes + 1_000);
  expect([removed, failures]).toEqual([1, [new Error('No database.')]]);
  await jest.advanceTimersByTimeAsync(tenMinutes);
  expect([removed, failures.length]).toEqual([3, 1]);
});

it('removes nothing once it is stopped', async () => {
  await removals.stop();
  await jest.advanceTimersByTimeAsync(2 * tenMinutes);
  expect(removed).toBe(0);
});
