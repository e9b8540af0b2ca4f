import { setTimeout as delay } from 'node:timers/promises';
import { backOffMs } from '@atoll/waiting';
import { isOutage } from './database-errors.js';

const pauses = { firstMs: 100, maxMs: 2_000 };

/**
 * What a service reads as it starts. While the database does not answer, it is tried again (for 30 s unless told
 * otherwise), as connecting at the start is: a process that gives up sooner is started again, and again asks a database
 * that is busy. Throws what the work throws otherwise.
 */
export async function onceAvailable<T>(work: () => Promise<T>, patienceMs = 30_000): Promise<T> {
  const untilMs = performance.now() + patienceMs;
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      const pauseMs = backOffMs(pauses, failures);
      if (!isOutage(error) || performance.now() + pauseMs > untilMs) throw error;
      await delay(pauseMs);
    }
  }
}
