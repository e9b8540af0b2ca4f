import { expect, it } from '@jest/globals';
import { timeoutFactor } from './timeout-factor.js';
import { untilDayThatLastsMs } from './day-that-lasts.js';

const at = (time: string) => Date.parse(`2026-11-28T${time}Z`);

it('a spec waits for the next day within a minute of midnight UTC, and not before or after', () => {
  const nearMs = 60_000 * timeoutFactor;
  expect(['00:00:00', '12:00:00'].map((time) => untilDayThatLastsMs(at(time)))).toEqual([0, 0]);
  expect([nearMs + 1, nearMs, 1].map((leftMs) => untilDayThatLastsMs(at('00:00:00') + 86_400_000 - leftMs))).toEqual([
    0,
    nearMs + 1_000,
    1_001,
  ]);
});
