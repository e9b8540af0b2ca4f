import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { codeOf, soon } from '../contract/cluster-under-test-fixture.js';
import { Engine, type EngineCall } from './engine.js';
import { LogEngine, nextOf } from './log-engine-fixture.js';

let engine: LogEngine;
beforeEach(async () => void (engine = await LogEngine.start({ isSilent: true })));
afterEach(() => engine.stop());

it('a reader has all of a run that has written nothing, and what it writes then', async () => {
  const reading = engine.readAfter(null);
  expect(await nextOf(reading)).toEqual([[], true]);
  await engine.send('10 %', -60);
  expect(await nextOf(reading)).toEqual([[], false]);
  await engine.send(' 20 %\n', -60);
  expect(await nextOf(reading)).toEqual([['10 % 20 %'], true]);
  await reading.return(undefined);
});

it('a reader does not have all, and fails, where the engine answers to nothing else either', async () => {
  const reading = engine.readAfter(null);
  void engine.follow.then(() => (engine.engine.isFrozen = true));
  expect(await codeOf(reading.next())).toBe('unreachable');
});

it('a reader that had all fails once the engine answers nothing any more', async () => {
  const reading = engine.readAfter(null);
  expect(await nextOf(reading)).toEqual([[], true]);
  engine.engine.isFrozen = true;
  expect(await codeOf(reading.next())).toBe('unreachable');
});

it('a reader that gives up before anything was written ends at once, and its connection with it', async () => {
  const stop = new AbortController();
  const reading = engine.readAfter(null, stop.signal);
  expect(await nextOf(reading)).toEqual([[], true]);
  const closed = once(await engine.follow, 'close');
  const next = reading.next();
  stop.abort();
  expect((await next).done).toBe(true);
  await closed;
});

it('a log whose turn does not come, since so many are followed, is not one that is silent', async () => {
  const [stop, followed] = [new AbortController(), new Engine({ socketPath: engine.engine.socketPath })];
  const call: EngineCall = { method: 'GET', path: '/containers/c1/logs', query: { follow: true }, signal: stop.signal };
  const others: Promise<unknown>[] = [];
  while (others.length < 1_024) {
    others.push((await followed.follow(call)).opened);
    // The engine accepts connections meanwhile.
    await turn();
  }
  const next = { ...call, signal: AbortSignal.any([stop.signal, soon()]), deadlineMs: 100 };
  expect(await codeOf(followed.follow(next))).toBe('unreachable');
  stop.abort();
  await Promise.allSettled(others);
  followed.close();
});
