import { getEventListeners } from 'node:events';
import type { ClusterDriver, LogBatch, ObjectRef } from '@atoll/cluster';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { LogsFixture } from './logs-fixture.js';

let fixture: LogsFixture;
beforeAll(async () => {
  fixture = await LogsFixture.start();
});
afterAll(() => fixture.stop());

it('each reader is told by a signal of its own that the service stops: none has to be searched for among those of thousands', async () => {
  const signals: AbortSignal[] = [];
  const ended = jest.fn();
  const readLogs = async function* (_ref: ObjectRef, _after: string | null, signal: AbortSignal): AsyncGenerator<LogBatch> {
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
