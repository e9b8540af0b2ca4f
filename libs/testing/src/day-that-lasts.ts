import { setTimeout as delay } from 'node:timers/promises';
import { timeoutFactor } from './timeout-factor.js';

const dayMs = 86_400_000;
const longestSpecMs = 60_000 * timeoutFactor;

/** Milliseconds until a day by UTC begins that does not end within a minute; 0 where that of `nowMs` does not. */
export function untilDayThatLastsMs(nowMs: number): number {
  const leftMs = dayMs - (nowMs % dayMs);
  return leftMs > longestSpecMs ? 0 : leftMs + 1_000;
}

/** Waits until midnight UTC has passed, where it is near. For specs of what is counted by the day. */
export const aDayThatLasts = (): Promise<void> => delay(untilDayThatLastsMs(Date.now()));
