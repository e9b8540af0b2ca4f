import { setTimeout as delay } from 'node:timers/promises';

const patienceMs = 20_000;
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
