import { setTimeout as delay } from 'node:timers/promises';
import { timeoutFactor } from '@atoll/testing';
import { withPatience } from '@atoll/waiting';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { LogBatch } from '../observations.js';
import { LogEngine, nextOf } from './log-engine-fixture.js';

let engine: LogEngine;
let reading: AsyncGenerator<LogBatch>;
beforeEach(async () => {
  engine = await LogEngine.start();
  reading = engine.readAfter(null);
});
afterEach(async () => {
  await reading.return(undefined);
  await engine.stop();
});

it('a reader that an engine gives nothing more has all, be it nothing', async () => {
  expect(await nextOf(reading)).toEqual([[], true]);
});

it('a reader whose engine takes its time to find where to begin does not have all before that', async () => {
  reading = engine.readAfter(JSON.stringify([Math.floor(Date.now() / 1000) - 7_200, 0, 0, 0, 0, 0, 0, '']));
  const first = nextOf(reading);
  await delay(1_500);
  await engine.send('old\n', 3_600);
  expect(await first).toEqual([['old'], false]);
});

it('a reader of old lines does not have all until the engine gives nothing more', async () => {
  const first = nextOf(reading);
  await engine.send('old\n', 3_600);
  expect(await first).toEqual([['old'], false]);
  expect(await nextOf(reading)).toEqual([[], true]);
});

it('a reader of lines that were just written has all, and has not while one of them is open', async () => {
  expect(await nextOf(reading)).toEqual([[], true]);
  // By a clock that is ahead, however slow the machine is.
  await engine.send('new\n', -60);
  expect(await nextOf(reading)).toEqual([['new'], true]);
  await engine.send('10 %', -60);
  expect(await nextOf(reading)).toEqual([[], false]);
  await engine.send(' 20 %\n', -60);
  expect(await nextOf(reading)).toEqual([['10 % 20 %'], true]);
});

it('a reader is given a line that stays open for seconds, although the clock was set back meanwhile', async () => {
  expect(await nextOf(reading)).toEqual([[], true]);
  await engine.send('10 %', -60);
  expect(await nextOf(reading)).toEqual([[], false]);
  const realNow = Date.now;
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 3_600_000);
  try {
    expect(await withPatience(nextOf(reading), 20_000 * timeoutFactor, null)).toEqual([['10 %'], true]);
  } finally {
    clock.mockRestore();
  }
});

it('a reader whose stream ends before its run does not have all until the next one is read', async () => {
  expect(await nextOf(reading)).toEqual([[], true]);
  (await engine.follow).end();
  expect(await nextOf(reading)).toEqual([[], false]);
});
