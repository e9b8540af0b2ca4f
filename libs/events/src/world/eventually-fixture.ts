import { setTimeout as delay } from 'node:timers/promises';
import { timeoutFactor } from '@atoll/testing';

const patienceMs = 90_000 * timeoutFactor;
const firstPauseMs = 10;
const maxPauseMs = 100;

/**
 * Runs the check again and again, less often the longer it takes, until it no longer throws; in the end throws what it
 * threw last.
 */
export async function eventually(check: () => Promise<void> | void): Promise<void> {
  const untilMs = Date.now() + patienceMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.4, maxPauseMs)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > untilMs) throw error;
    }
    await delay(pauseMs);
  }
}
