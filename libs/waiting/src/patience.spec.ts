import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { withPatience } from './patience.js';

describe('patience with work', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('has its outcome where it is done in time, and leaves no timer', async () => {
    expect(await withPatience(Promise.resolve('done'), 10, 'late')).toBe('done');
    await expect(withPatience(Promise.reject(new Error('failed')), 10, 'late')).rejects.toThrow('failed');
    expect(jest.getTimerCount()).toBe(0);
  });

  it('ends when its time is over, whatever comes of the work', async () => {
    const work = Promise.withResolvers<string>();
    const outcome = withPatience(work.promise, 10, 'late');
    jest.advanceTimersByTime(10);
    expect(await outcome).toBe('late');
    work.reject(new Error('failed later'));
  });

  it('that stays open leaves nothing with it, however often it is waited for', async () => {
    const work = Promise.withResolvers<string>();
    const waits = jest.spyOn(work.promise, 'then');
    for (let count = 0; count < 3; count += 1) {
      const outcome = withPatience(work.promise, 10, 'late');
      jest.advanceTimersByTime(10);
      expect(await outcome).toBe('late');
    }
    expect(waits).toHaveBeenCalledTimes(1);
    const both = [withPatience(work.promise, 10, 'late'), withPatience(work.promise, 20, 'late')];
    work.resolve('done');
    expect(await Promise.all(both)).toEqual(['done', 'done']);
    expect(await withPatience(work.promise, 10, 'late')).toBe('done');
    expect(jest.getTimerCount()).toBe(0);
  });

  it('lasts 24 days where it is to last longer than a timer can', async () => {
    const work = Promise.withResolvers<string>();
    const outcome = withPatience(work.promise, Number.MAX_SAFE_INTEGER, 'late');
    jest.advanceTimersByTime(2 ** 31 - 2);
    work.resolve('done');
    expect(await outcome).toBe('done');
  });
});
