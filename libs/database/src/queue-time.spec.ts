import { expect, it } from '@jest/globals';
import { QueueTime } from './queue-time.js';

it('counts the time in which at least one waits, and goes on while one still does', () => {
  let nowMs = 0;
  const queued = new QueueTime(undefined, () => nowMs);
  expect(queued.ms).toBe(0);
  const first = queued.begin();
  nowMs = 10;
  const second = queued.begin();
  nowMs = 15;
  first();
  nowMs = 20;
  expect(queued.ms).toBe(20);
  second();
  nowMs = 100;
  expect(queued.ms).toBe(20);
  queued.begin();
  nowMs = 101;
  expect(queued.ms).toBe(21);
});
