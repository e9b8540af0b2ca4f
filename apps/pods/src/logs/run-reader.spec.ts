import { expect, it, jest } from '@jest/globals';
import type { ClusterDriver, LogBatch } from '@atoll/cluster';
import { Turns } from '@atoll/waiting';
import type { LogClaims } from './log-claims.js';
import type { LogVolume } from './log-volume.js';
import type { LogWriter } from './log-writer.js';
import { RunReader } from './run-reader.js';

const line = (message: string, timestamp = '2026-11-01T12:00:00.000000000Z') => ({
  timestamp,
  stream: 'stdout' as const,
  message,
  isCut: false,
});

/** A reader of these batches, whose lines `write` stores. */
function readerOf(
  batches: Iterable<LogBatch>,
  write: LogWriter['write'],
  onTrouble = (_: unknown): void => undefined,
  now = () => Date.parse('2026-11-01T12:00:01Z'),
) {
  const driver = {
    async *readLogs(): AsyncGenerator<LogBatch> {
      for (const batch of batches) yield await Promise.resolve(batch);
    },
  } as unknown as ClusterDriver;
  return new RunReader(
    { source: { no: 1, teamId: 'team', gpuaasId: '1' } as never, podId: 'pod', run: 1, cursor: null, lastNs: 0n },
    {
      driverOf: () => Promise.resolve(driver),
      writer: { write } as unknown as LogWriter,
      claims: {} as LogClaims,
      volume: { isUsedUp: () => false, notice: () => undefined, count: () => undefined } as unknown as LogVolume,
      turns: new Turns(),
      // A hundred lines at once.
      limits: { linesPerSecond: 10, bytesPerSecond: 1_000_000 },
      now,
      onTrouble,
    },
  );
}

it('lines that are written again, since the store was away, count once for what a pod may write', async () => {
  const lines = Array.from({ length: 60 }, (_, at) => line(`line ${at}`));
  const written: { lines: readonly object[]; notices: readonly string[] }[] = [];
  const troubles: unknown[] = [];
  const reader = readerOf(
    [{ lines, cursor: 'end', isComplete: true, isCurrent: true }],
    (read) => {
      written.push(read);
      return written.length === 1 ? Promise.reject(new Error('The store is away.')) : Promise.resolve(true);
    },
    (error) => troubles.push(error),
  );
  await reader.read(new AbortController().signal);
  expect(troubles).toHaveLength(1);
  expect(written.map((read) => [read.lines.length, read.notices.length])).toEqual([
    [60, 0],
    [60, 0],
  ]);
});

it.each([
  ['was ahead by hours and has been set back', (second: number) => second < 0],
  ['is ahead by hours all the time', () => true],
])('a pod may write as much as ever when the clock of its host %s', async (_, isAhead) => {
  const clock = function* (): Generator<LogBatch> {
    const startMs = Date.parse('2026-11-01T12:00:00Z');
    for (let second = -1; second < 300; second += 1) {
      const writtenMs = startMs + second * 1_000 + (isAhead(second) ? 6 * 3_600_000 : 0);
      const timestamp = new Date(writtenMs).toISOString();
      const lines = Array.from({ length: 5 }, (__, at) => line(`${second} ${at}`, timestamp));
      yield { lines, cursor: `${second}`, isComplete: second === 299, isCurrent: true };
    }
  };
  const stored: number[] = [];
  const reader = readerOf(
    clock(),
    ({ lines }) => {
      stored.push(lines.length);
      return Promise.resolve(true);
    },
    undefined,
    // It reads what had piled up, at once.
    () => Date.parse('2026-11-01T12:05:00Z'),
  );
  await reader.read(new AbortController().signal);
  expect(stored.filter((count) => count !== 5)).toEqual([]);
});

it('a source is late since the first of the lines that it works off, until it has all', async () => {
  let nowMs = 10_000;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => (nowMs += 2_000));
  const late: number[] = [];
  const batch = (cursor: string, isCurrent: boolean) => ({
    lines: [line(cursor)],
    ...{ cursor, isComplete: false, isCurrent },
  });
  const reader = readerOf([batch('one', true), batch('two', false), batch('three', false), batch('four', true)], () => {
    late.push(reader.lateSinceMs);
    return Promise.resolve(true);
  });
  await reader.read(AbortSignal.timeout(50));
  clock.mockRestore();
  const [, two = 0] = late;
  expect(late.slice(1)).toEqual([two, two, two]);
  expect(reader.lateSinceMs).toBe(Infinity);
});

it('lines that came while others were stored are as late as these, however soon they are read', async () => {
  let nowMs = 10_000;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const late: number[] = [];
  const batch = (cursor: string, isComplete = false) => ({
    lines: [line(cursor)],
    ...{ cursor, isComplete, isCurrent: true },
  });
  const reader = readerOf([batch('one'), batch('two'), batch('three', true)], () => {
    late.push(reader.lateSinceMs);
    // The store is slow.
    nowMs += 4_000;
    return Promise.resolve(true);
  });
  await reader.read(new AbortController().signal);
  clock.mockRestore();
  expect(late).toEqual([-Infinity, 10_000, 14_000]);
});
