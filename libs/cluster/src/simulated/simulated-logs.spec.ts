import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase, timeoutFactor } from '@atoll/testing';
import { expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import type { LogBatch } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';
import { SimulatedWorld } from './simulated-world.js';

const readers = 300;

it('many who read at once cost few statements, and each reads its own run', async () => {
  const database = await createDatabase();
  const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  const rows = rowsOf(dataSource);
  let statements = 0;
  const store: SimulatedStore = {
    query: (sql, values) => {
      statements += 1;
      return rows.query(sql, values);
    },
  };
  const world = new SimulatedWorld({ store, listenHost: '127.0.0.1', secrets: new Sealer(Sealer.createKeys()), pullMs: 0 });
  await world.ready();
  const cluster = world.cluster('one');
  const refs = Array.from({ length: readers }, (_, at) => ({ kind: 'pod' as const, id: `pod-${at}`, run: 1 }));
  const owner = { installationId: 'one', teamId: 'team', gpuaasId: '1' } as never;
  for (const ref of refs) await cluster.runs.start({ ref, podName: ref.id, image: 'idle:1', command: [], slices: [], owner, volumes: [] });
  await rows.query(`INSERT INTO ${tables.line} (cluster, id, run, message) VALUES ('one', 'pod-7', 1, 'GET /')`);
  statements = 0;
  const stop = new AbortController();
  const soon = AbortSignal.any([stop.signal, AbortSignal.timeout(60_000 * timeoutFactor)]);
  const reading = refs.map((ref) => cluster.readLogs(ref, null, soon));
  const nextOf = async (lines: AsyncGenerator<LogBatch>) => ((await lines.next()).value as LogBatch).lines.map(({ message }) => message);
  const first = await Promise.all(reading.map(nextOf));
  expect(statements).toBeLessThan(readers);
  expect(first.map(([message]) => message)).toEqual(refs.map(({ id }) => `${id}: started idle:1`));
  const linesOf = async (at: number, isEnough: (messages: string[]) => boolean) => {
    const messages = [...(first[at] ?? [])];
    while (!isEnough(messages)) messages.push(...(await nextOf(reading[at]!)));
    return messages.filter((message) => message === 'GET /').length;
  };
  // Runs say more the longer they run, so that what was added may come after several other lines.
  expect(await Promise.all([linesOf(7, (messages) => messages.includes('GET /')), linesOf(8, ({ length }) => length >= 3)])).toEqual([
    1, 0,
  ]);
  stop.abort();
  expect((await reading[0]?.next())?.done).toBe(true);
  await world.close();
  await dataSource.destroy();
  await database.drop();
});
