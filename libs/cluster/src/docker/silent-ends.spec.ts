import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { codeOf, eventually } from '../contract/cluster-under-test-fixture.js';
import { LogEngine, nextOf } from './log-engine-fixture.js';

let engine: LogEngine;
afterEach(() => engine.stop());

describe.each([
  { when: 'before it was answered', isSilent: true },
  { when: 'while it is followed', isSilent: false },
])('a log that becomes silent $when', ({ isSilent }) => {
  it('ends its reader, and its connection, where the container is gone', async () => {
    engine = await LogEngine.start({ isSilent, logWaits: { lookMs: 50 } });
    const reading = engine.readAfter(null);
    expect(await nextOf(reading)).toEqual([[], true]);
    const closed = once(await engine.follow, 'close');
    engine.status = null;
    expect(await nextOf(reading)).toEqual([[], false]);
    expect(await codeOf(reading.next())).toBe('not_found');
    await closed;
  });

  it('is read on where a look at the container fails', async () => {
    engine = await LogEngine.start({ isSilent, logWaits: { lookMs: 50 } });
    const reading = engine.readAfter(null);
    expect(await nextOf(reading)).toEqual([[], true]);
    const next = nextOf(reading);
    engine.status = 'unknown';
    const failed = engine.looks + 3;
    await eventually(async () => engine.looks >= failed || undefined);
    await engine.send('new\n', -60);
    expect(await next).toEqual([['new'], true]);
    await reading.return(undefined);
  });

  it('is read to its end where the container has ended', async () => {
    engine = await LogEngine.start({ isSilent, logWaits: { lookMs: 50 } });
    const reading = engine.readAfter(null);
    expect(await nextOf(reading)).toEqual([[], true]);
    engine.status = 'exited';
    expect(await nextOf(reading)).toEqual([[], false]);
    const last = nextOf(reading);
    await engine.send('last\n', 0, engine.rest);
    (await engine.rest).end();
    expect((await last)[0]).toEqual(['last']);
    expect((await reading.next()).value).toMatchObject({ isComplete: true });
  });
});

describe('a reader that goes on from a cursor, of an engine that is silent', () => {
  const reader = async () => {
    engine = await LogEngine.start({ isSilent: true, logWaits: { seekMs: 50 } });
    return engine.readAfter(cursor());
  };
  /** One piece has been taken that is no older than the place, and is read again. */
  const cursor = () => JSON.stringify([Math.floor(Date.now() / 1000) - 7_200, 1, 0, 1, 0, 0, 0, '']);

  it('does not have all while the engine looks for the place', async () => {
    const first = nextOf(await reader());
    const rest = once(await engine.rest, 'close');
    await engine.send('had\n', 3_600);
    await engine.send('old\n', 3_600);
    expect(await first).toEqual([['old'], false]);
    // Nobody needs to know any more.
    await rest;
  });

  it('has all once the log has turned out to hold nothing more', async () => {
    const reading = await reader();
    const first = nextOf(reading);
    await engine.send('had\n', 3_600, engine.rest);
    (await engine.rest).end();
    expect(await first).toEqual([[], true]);
    await engine.send('had\n', 3_600);
    await engine.send('new\n', -60);
    expect(await nextOf(reading)).toEqual([['new'], true]);
  });

  it('asks with three others at once alone: each makes the engine read the whole log', async () => {
    const cursors = [await reader(), ...Array.from({ length: 5 }, () => engine.readAfter(cursor()))];
    const firsts = cursors.map(nextOf);
    let [ended, most] = [0, 0];
    while (ended < cursors.length) {
      await delay(100);
      most = Math.max(most, engine.rests.length - ended);
      engine.rests[ended]?.end();
      if (engine.rests.length > ended) ended += 1;
    }
    expect(most).toBe(4);
    expect(await Promise.all(firsts)).toEqual(cursors.map(() => [[], true]));
  });

  it('does not have all where the log holds more, and reads that once', async () => {
    const first = nextOf(await reader());
    const closed = once(await engine.rest, 'close');
    await engine.send('had\n', 3_600, engine.rest);
    await engine.send('old\n', 3_600, engine.rest);
    await closed;
    await engine.send('had\n', 3_600);
    await engine.send('old\n', 3_600);
    expect(await first).toEqual([['old'], false]);
  });
});
