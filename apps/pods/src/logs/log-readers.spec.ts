import { getEventListeners } from 'node:events';
import type { ClusterDriver, LogBatch, ObjectRef } from '@atoll/cluster';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { LogVolume } from './log-volume.js';
import { LogsFixture } from './logs-fixture.js';

let fixture: LogsFixture;
beforeAll(async () => {
  fixture = await LogsFixture.start();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

it('readers that begin at once have the driver of their cluster looked up once for all of them', async () => {
  const { driverOf } = fixture.engines;
  const asked = jest.spyOn(fixture.engines, 'driverOf').mockImplementation(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return driverOf.call(fixture.engines);
  });
  const pods = await Promise.all(Array.from({ length: 20 }, () => fixture.pod(fixture.team())));
  for (const { podId } of pods) await fixture.endRun(podId, 1);
  await fixture.collector.collect();
  await fixture.collector.idle();
  expect(asked).toHaveBeenCalledTimes(1);
});

it('readers that find many lines, as those of a start after a while, take turns of the event loop', async () => {
  fixture.engines.perBatch = 200;
  const pods = await Promise.all(Array.from({ length: 20 }, () => fixture.pod(fixture.team())));
  for (const { podId } of pods) {
    fixture.write(
      podId,
      Array.from({ length: 200 }, (_, line) => `line ${line}`),
    );
    await fixture.endRun(podId, 1);
  }
  let [turn, isOver] = [0, false];
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const turns: number[] = [];
  jest.spyOn(fixture.get(LogVolume), 'isUsedUp').mockImplementation(() => {
    turns.push(turn);
    return false;
  });
  await fixture.collector.collect();
  await fixture.collector.idle();
  isOver = true;
  expect(turns.length).toBeGreaterThanOrEqual(20);
  expect(new Set(turns).size).toBeGreaterThanOrEqual(20);
});

it('each reader is told by a signal of its own that the service stops: none has to be searched for among those of thousands', async () => {
  const signals: AbortSignal[] = [];
  const ended = jest.fn();
  const readLogs = async function* (
    _ref: ObjectRef,
    _after: string | null,
    signal: AbortSignal,
  ): AsyncGenerator<LogBatch> {
    signals.push(signal);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    ended();
    yield* [];
  };
  jest.spyOn(fixture.engines, 'driverOf').mockResolvedValue({ readLogs } as unknown as ClusterDriver);
  for (let pod = 0; pod < 20; pod += 1) await fixture.pod(fixture.team());
  await fixture.collector.collect();
  while (signals.length < 20) await new Promise((resolve) => setImmediate(resolve));
  expect(new Set(signals).size).toBe(20);
  expect(signals.map((signal) => getEventListeners(signal, 'abort').length)).toEqual(signals.map(() => 1));
  await fixture.collector.beforeApplicationShutdown();
  expect(ended).toHaveBeenCalledTimes(20);
});
