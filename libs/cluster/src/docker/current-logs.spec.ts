import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import type { LogBatch } from '../observations.js';
import { FakeEngine } from './fake-engine-fixture.js';

let engine: FakeEngine;
let follow: Promise<ServerResponse>;
let reading: AsyncGenerator<LogBatch>;
beforeEach(async () => {
  const opened = Promise.withResolvers<ServerResponse>();
  follow = opened.promise;
  engine = await FakeEngine.start(({ url }, response) => {
    if (!url.includes('/logs?'))
      return void response.end(
        JSON.stringify({
          Id: 'c1',
          State: { Status: 'running', Running: true, StartedAt: '2026-01-01T00:00:00Z' },
          Config: { Labels: { 'dev.atoll.installation': 'i1' } },
        }),
      );
    response.writeHead(200).flushHeaders();
    opened.resolve(response);
  });
  reading = readAfter(null);
});
afterEach(async () => {
  await reading.return(undefined);
  await engine.stop();
});

function readAfter(cursor: string | null): AsyncGenerator<LogBatch> {
  const ref = { kind: 'pod', id: 'p1', run: 1 } as const;
  return engine.driver.readLogs(ref, cursor, AbortSignal.timeout(30_000 * timeoutFactor));
}

/** A piece of the output, as the engine sends it. */
async function send(text: string, secondsAgo: number): Promise<void> {
  const data = Buffer.from(`${new Date(Date.now() - secondsAgo * 1000).toISOString()} ${text}`);
  const head = Buffer.alloc(8);
  head[0] = 1;
  head.writeUInt32BE(data.length, 4);
  const response = await follow;
  if (!response.write(Buffer.concat([head, data]))) await once(response, 'drain');
}

async function next(): Promise<[messages: string[], isCurrent: boolean]> {
  const { value } = (await reading.next()) as { value: LogBatch };
  return [value.lines.map(({ message }) => message), value.isCurrent];
}

it('a reader that an engine gives nothing more has all, be it nothing', async () => {
  expect(await next()).toEqual([[], true]);
});

it('a reader whose engine takes its time to find where to begin does not have all before that', async () => {
  reading = readAfter(JSON.stringify([Math.floor(Date.now() / 1000) - 7_200, 0, 0, 0, 0, 0, 0, '']));
  const first = next();
  await delay(1_500);
  await send('old\n', 3_600);
  expect(await first).toEqual([['old'], false]);
});

it('a reader of old lines does not have all until the engine gives nothing more', async () => {
  const first = next();
  await send('old\n', 3_600);
  expect(await first).toEqual([['old'], false]);
  expect(await next()).toEqual([[], true]);
});

it('a reader of lines that were just written has all, and has not while one of them is open', async () => {
  expect(await next()).toEqual([[], true]);
  // By a clock that is ahead, however slow the machine is.
  await send('new\n', -60);
  expect(await next()).toEqual([['new'], true]);
  await send('10 %', -60);
  expect(await next()).toEqual([[], false]);
  await send(' 20 %\n', -60);
  expect(await next()).toEqual([['10 % 20 %'], true]);
});

it('a reader whose stream ends before its run does not have all until the next one is read', async () => {
  expect(await next()).toEqual([[], true]);
  (await follow).end();
  expect(await next()).toEqual([[], false]);
});
