import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { codeOf, eventually, soon } from '../contract/cluster-under-test-fixture.js';
import { Engine, type EngineCall } from './engine.js';
import { LogEngine, nextOf } from './log-engine-fixture.js';

const start = (isSilent: boolean) => LogEngine.start({ isSilent, logWaits: { unreachableMs: 1_000 } });

let engine: LogEngine;
beforeEach(async () => void (engine = await start(true)));
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

describe.each([
  { what: 'a log that it has not answered yet', isSilent: true },
  { what: 'a log that is open', isSilent: false },
])('an engine that answers nothing any more, of $what', ({ isSilent }) => {
  beforeEach(async () => {
    await engine.stop();
    engine = await start(isSilent);
  });

  it('has not given all to a reader that had all, which fails', async () => {
    const reading = engine.readAfter(null);
    expect(await nextOf(reading)).toEqual([[], true]);
    engine.engine.isFrozen = true;
    expect(await nextOf(reading)).toEqual([[], false]);
    expect(await codeOf(reading.next())).toBe('unreachable');
  });
});

it.each(['running', 'exited'] as const)(
  'a reader does not have all of a run that is %s while the engine stands still in the middle of it',
  async (status) => {
    await engine.stop();
    engine = await start(false);
    engine.status = status;
    const reading = engine.readAfter(null);
    const first = nextOf(reading);
    await engine.send('old\n', 3_600, status === 'running' ? engine.follow : engine.rest);
    expect(await first).toEqual([['old'], false]);
    engine.engine.isFrozen = true;
    expect(await codeOf(reading.next())).toBe('unreachable');
  },
);

it('an engine is asked once for all readers whether it answers', async () => {
  const stop = new AbortController();
  const readings = Array.from({ length: 20 }, () => engine.readAfter(null, stop.signal));
  expect(await Promise.all(readings.map(nextOf))).toEqual(readings.map(() => [[], true]));
  const [pings, sinceMs] = [engine.engine.pings, performance.now()];
  const waits = readings.map((reading) => reading.next());
  await eventually(async () => engine.engine.pings >= pings + 3 || undefined);
  // Once a second; by each for itself it is 20 times as often.
  expect(engine.engine.pings - pings).toBeLessThan(3 + (2 * (performance.now() - sinceMs)) / 1_000);
  stop.abort();
  await Promise.allSettled(waits);
});

it('a reader has all of an engine that is busy: whether it answers is asked beside its calls', async () => {
  const reading = engine.readAfter(null);
  expect(await nextOf(reading)).toEqual([[], true]);
  engine.status = 'hanging';
  const stop = new AbortController();
  const calls = Array.from({ length: 20 }, () =>
    engine.engine.driver.observePods([{ kind: 'pod', id: 'p1', run: 1 }], stop.signal),
  );
  const ended = Promise.allSettled(calls);
  const pings = engine.engine.pings;
  const asked = eventually(async () => engine.engine.pings >= pings + 2 || undefined);
  const next = nextOf(reading);
  expect(await Promise.race([asked, next])).toBe(true);
  await engine.send('new\n', -60);
  expect(await next).toEqual([['new'], true]);
  stop.abort();
  await ended;
  await reading.return(undefined);
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
