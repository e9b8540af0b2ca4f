import { expect, it } from '@jest/globals';
import type { ClusterDriver, LogBatch } from '@atoll/cluster';
import { Turns } from '@atoll/waiting';
import type { LogClaims } from './log-claims.js';
import type { LogVolume } from './log-volume.js';
import type { LogWriter } from './log-writer.js';
import { RunReader } from './run-reader.js';

it('lines that are written again, since the store was away, count once for what a pod may write', async () => {
  const lines = Array.from({ length: 60 }, (_, at) => ({
    timestamp: '2026-11-01T12:00:00.000000000Z',
    stream: 'stdout' as const,
    message: `line ${at}`,
    isCut: false,
  }));
  const batch: LogBatch = { lines, cursor: 'end', isComplete: true, isCurrent: true };
  const driver = {
    async *readLogs(): AsyncGenerator<LogBatch> {
      yield await Promise.resolve(batch);
    },
  } as unknown as ClusterDriver;
  const written: { lines: readonly object[]; notices: readonly string[] }[] = [];
  let isAway = true;
  const writer = {
    write: (read: (typeof written)[number]) => {
      written.push(read);
      if (!isAway) return Promise.resolve(true);
      isAway = false;
      return Promise.reject(new Error('The store is away.'));
    },
  } as unknown as LogWriter;
  const source = { no: 1, teamId: 'team', gpuaasId: '1' } as never;
  const troubles: unknown[] = [];
  const reader = new RunReader(
    { source, podId: 'pod', run: 1, cursor: null, lastNs: 0n },
    {
      driverOf: () => Promise.resolve(driver),
      writer,
      claims: {} as LogClaims,
      volume: { isUsedUp: () => false, notice: () => undefined, count: () => undefined } as unknown as LogVolume,
      turns: new Turns(),
      // A hundred lines at once.
      limits: { linesPerSecond: 10, bytesPerSecond: 1_000_000 },
      now: () => Date.parse('2026-11-01T12:00:01Z'),
      onTrouble: (error) => troubles.push(error),
    },
  );
  await reader.read(new AbortController().signal);
  expect(troubles).toHaveLength(1);
  expect(written.map((read) => [read.lines.length, read.notices.length])).toEqual([
    [60, 0],
    [60, 0],
  ]);
});
