import { expect, it, jest } from '@jest/globals';
import { PodEnds } from './pod-ends.js';

it('the pods service has been quiet since it last ended a pod of the team, and no longer than this process runs', () => {
  jest.useFakeTimers();
  const ends = new PodEnds();
  jest.advanceTimersByTime(10_000);
  expect(ends.quietMs('ours')).toBe(10_000);
  ends.heard('ours');
  jest.advanceTimersByTime(500);
  expect([ends.quietMs('ours'), ends.quietMs('theirs')]).toEqual([500, 10_500]);
});
