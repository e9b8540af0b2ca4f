import { setTimeout as delay } from 'node:timers/promises';
import { timeoutFactor } from '@atoll/testing';

const patienceMs = 40_000 * timeoutFactor;
const pauseMs = 10;

/** Runs the check again and again until it no longer throws; in the end throws what it threw last. */
export async function eventually(check: () => Promise<void> | void): Promise<void> {
  const untilMs = Date.now() + patienceMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > untilMs) throw error;
    }
    await delay(pauseMs);
  }
}
