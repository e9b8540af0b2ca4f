import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Removals } from './removals.js';

const tenMinutes = 600_000;
/** What each batch comes to: whether there may be more, or a failure. */
let batches: (boolean | Error)[];
let warned: jest.SpiedFunction<Logger['warn']>;
let removed: number;
let removals: Toys;

class Toys extends Removals {
  constructor(isIdle = false) {
    super('old toys', isIdle);
  }

  override removeSome(): Promise<boolean> {
    removed += 1;
    const batch = batches.shift() ?? false;
    return batch instanceof Error ? Promise.reject(batch) : Promise.resolve(batch);
  }
}

beforeEach(() => {
  jest.useFakeTimers();
  [batches, removed] = [[], 0];
  warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  removals = new Toys();
  removals.onApplicationBootstrap();
});
afterEach(async () => {
  await removals.beforeApplicationShutdown();
  jest.useRealTimers();
  jest.restoreAllMocks();
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
  expect([removed, warned.mock.calls.flat()]).toEqual([1, ['Cannot remove old toys; retrying: No database.']]);
  await jest.advanceTimersByTimeAsync(tenMinutes);
  expect([removed, warned.mock.calls.length]).toEqual([3, 1]);
});

it('removes nothing once it is stopped', async () => {
  await removals.beforeApplicationShutdown();
  await jest.advanceTimersByTimeAsync(2 * tenMinutes);
  expect(removed).toBe(0);
});

it('removes nothing by itself where it is idle', async () => {
  const idle = new Toys(true);
  await removals.beforeApplicationShutdown();
  idle.onApplicationBootstrap();
  await jest.advanceTimersByTimeAsync(2 * tenMinutes);
  expect(removed).toBe(0);
});
