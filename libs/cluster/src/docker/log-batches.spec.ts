import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { codeOf } from '../contract/cluster-under-test-fixture.js';
import type { LogBatch } from '../observations.js';
import { LogEngine, nextOf } from './log-engine-fixture.js';

let engine: LogEngine;
beforeEach(async () => void (engine = await LogEngine.start()));
afterEach(() => engine.stop());

/** Each line as a chunk of its own, as Podman sends them: Node.js joins what is written in one turn. */
async function write(count: number, message: string): Promise<void> {
  for (let no = 0; no < count; no += 1) {
    await engine.send(`${message}\n`, 0);
    await turn();
  }
}

/** Batches with lines, until so many lines are read. */
async function read(reading: AsyncGenerator<LogBatch>, count: number): Promise<LogBatch['lines'][]> {
  const batches: LogBatch['lines'][] = [];
  for (let left = count; left > 0;) {
    const { value } = (await reading.next()) as { value: LogBatch };
    if (value.lines.length > 0) batches.push(value.lines);
    left -= value.lines.length;
  }
  return batches;
}

it('lines that come while a batch is stored are one batch', async () => {
  const reading = engine.readAfter(null);
  const first = reading.next();
  await write(1, 'first');
  expect((await first).value).toMatchObject({ lines: [{ message: 'first' }] });
  await write(500, 'next');
  expect((await read(reading, 500)).length).toBeLessThan(10);
  await reading.return(undefined);
});

it('a flood comes in batches that are bounded', async () => {
  const message = 'x'.repeat(1_000);
  const reading = engine.readAfter(null);
  const writing = write(3_000, message);
  const batches = await read(reading, 3_000);
  await writing;
  expect(Math.max(...batches.map((lines) => lines.length))).toBeLessThanOrEqual(130);
  await reading.return(undefined);
});

it('a connection that breaks while a batch is stored fails the next one, and nothing else', async () => {
  const reading = engine.readAfter(null);
  expect(await nextOf(reading)).toEqual([[], true]);
  await engine.send('new\n', -60);
  expect(await nextOf(reading)).toEqual([['new'], true]);
  (await engine.follow).destroy();
  const other = engine.readAfter(null);
  expect(await nextOf(other)).toEqual([[], true]);
  expect(await codeOf(reading.next())).toBe('unreachable');
  await other.return(undefined);
});
