import { expect, it } from '@jest/globals';
import { WakeUp } from './wake-up.js';

const longMs = 600_000;

it('ends the wait under way', async () => {
  const wakeUp = new WakeUp();
  const waiting = wakeUp.wait(longMs);
  wakeUp.ring();
  expect(await waiting).toBe(true);
});

it('ends the next wait at once where nobody waits, however often it rang, and that wait alone', async () => {
  const wakeUp = new WakeUp();
  wakeUp.ring();
  wakeUp.ring();
  expect(await wakeUp.wait(longMs)).toBe(true);
  expect(await wakeUp.wait(1)).toBe(false);
});

it('ends one wait a ring', async () => {
  const wakeUp = new WakeUp();
  const first = wakeUp.wait(longMs);
  wakeUp.ring();
  expect(await first).toBe(true);
  expect(await wakeUp.wait(1)).toBe(false);
});
