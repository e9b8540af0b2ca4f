import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Rounds } from './rounds.js';

const everyMs = 1_000;

/** Each look lasts until the spec ends it. */
let looks: (() => void)[] = [];
const rounds = () => new Rounds(() => new Promise((resolve) => looks.push(() => resolve(everyMs))));
const end = async (look: number) => {
  looks[look]?.();
  await jest.advanceTimersByTimeAsync(0);
};

beforeEach(() => {
  looks = [];
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('begin at once or after a while, and go on by time', async () => {
  const [atOnce, later] = [rounds(), rounds()];
  atOnce.start();
  expect(looks).toHaveLength(1);
  await end(0);
  await atOnce.stop();
  later.start(500);
  await jest.advanceTimersByTimeAsync(499);
  expect(looks).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(1);
  expect(looks).toHaveLength(2);
  await end(1);
  await jest.advanceTimersByTimeAsync(everyMs);
  expect(looks).toHaveLength(3);
});

it('do not pile up behind a slow one', async () => {
  rounds().start();
  await jest.advanceTimersByTimeAsync(100 * everyMs);
  await end(0);
  expect(looks).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(everyMs);
  await end(1);
  expect(looks).toHaveLength(2);
});

it('look once more, and at once, for all who ask during a look', async () => {
  const asked = rounds();
  asked.start();
  asked.wake();
  asked.wake();
  await end(0);
  await jest.advanceTimersByTimeAsync(0);
  expect(looks).toHaveLength(2);
  await end(1);
  await jest.advanceTimersByTimeAsync(0);
  expect(looks).toHaveLength(2);
});

it('stop when the look under way has ended, and neither time nor a call begins another', async () => {
  const stopped = rounds();
  stopped.start();
  let isOver = false;
  const over = stopped.stop().then(() => (isOver = true));
  await jest.advanceTimersByTimeAsync(everyMs);
  expect(isOver).toBe(false);
  await end(0);
  await over;
  stopped.wake();
  await jest.advanceTimersByTimeAsync(10 * everyMs);
  expect(looks).toHaveLength(1);
});
