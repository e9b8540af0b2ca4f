import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase, timeoutFactor } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import type { LogBatch } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';
import { SimulatedWorld } from './simulated-world.js';

const readers = 300;
let database: Awaited<ReturnType<typeof createDatabase>>;
let dataSource: DataSource;
beforeAll(async () => {
  database = await createDatabase();
  dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

const owner = { installationId: 'one', teamId: 'team', gpuaasId: '1' } as never;
const refsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ kind: 'pod' as const, id: `pod-${at}`, run: 1 }));

it('many who read at once cost few statements, and each reads its own run', async () => {
  const rows = rowsOf(dataSource);
  let statements = 0;
  const store: SimulatedStore = {
    query: (sql, values) => {
      statements += 1;
      return rows.query(sql, values);
    },
  };
  const world = new SimulatedWorld({
    store,
    listenHost: '127.0.0.1',
    secrets: new Sealer(Sealer.createKeys()),
    pullMs: 0,
  });
  await world.ready();
  const cluster = world.cluster('one');
  const refs = refsOf(readers);
  const run = { image: 'idle:1', command: [], slices: [], owner, volumes: [] };
  for (const ref of refs) await cluster.runs.start({ ref, podName: ref.id, ...run }, () => Promise.resolve(true));
  await rows.query(`INSERT INTO ${tables.line} (cluster, id, run, message) VALUES ('one', 'pod-7', 1, 'GET /')`);
  statements = 0;
  const stop = new AbortController();
  const soon = AbortSignal.any([stop.signal, AbortSignal.timeout(60_000 * timeoutFactor)]);
  const reading = refs.map((ref) => cluster.readLogs(ref, null, soon));
  const nextOf = async (lines: AsyncGenerator<LogBatch>) => {
    for (;;) {
      const batch = (await lines.next()).value as LogBatch;
      // None of them has more to read than one batch holds.
      expect(batch.isCurrent).toBe(true);
      if (batch.lines.length > 0) return batch.lines.map(({ message }) => message);
    }
  };
  const first = await Promise.all(reading.map(nextOf));
  expect(statements).toBeLessThan(readers);
  expect(first.map(([message]) => message)).toEqual(refs.map(({ id }) => `${id}: started idle:1`));
  const added = await Promise.all(
    [7, 8].map(async (at) => {
      const messages = [...(first[at] ?? [])];
      do messages.push(...(await nextOf(reading[at]!)));
      while (at === 7 && !messages.includes('GET /'));
      return messages.filter((message) => message === 'GET /').length;
    }),
  );
  expect(added).toEqual([1, 0]);
  stop.abort();
  expect((await reading[0]?.next())?.done).toBe(true);
  await world.close();
});

it('those who read all that was written in a long time take turns of the event loop', async () => {
  const secrets = new Sealer(Sealer.createKeys());
  const world = new SimulatedWorld({ store: rowsOf(dataSource), listenHost: '127.0.0.1', secrets, pullMs: 0 });
  await world.ready();
  const cluster = world.cluster('two');
  const refs = refsOf(20);
  for (const ref of refs)
    await cluster.runs.start(
      { ref, podName: ref.id, image: 'idle:1', command: [], slices: [], owner, volumes: [] },
      () => Promise.resolve(true),
    );
  await dataSource.query(`UPDATE ${tables.run} SET ready_at = ready_at - interval '10 minutes' WHERE cluster = 'two'`);
  let [turn, isOver] = [0, false];
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const stop = new AbortController();
  const turns = await Promise.all(
    refs.map(async (ref) => {
      const batch = (await cluster.readLogs(ref, null, stop.signal).next()).value as LogBatch;
      expect(batch.lines).toHaveLength(500);
      expect(batch.isCurrent).toBe(false);
      return turn;
    }),
  );
  isOver = true;
  expect(new Set(turns).size).toBe(refs.length);
  stop.abort();
  await world.close();
});

it('a run whose image could not be pulled has a log without a line', async () => {
  const world = new SimulatedWorld({
    store: rowsOf(dataSource),
    listenHost: '127.0.0.1',
    secrets: new Sealer(Sealer.createKeys()),
    pullMs: 0,
  });
  await world.ready();
  const cluster = world.cluster('no-image');
  const ref = { kind: 'pod' as const, id: 'pull-fail', run: 1 };
  const run = { ref, podName: 'pull-fail-abcde', image: 'idle:1', command: [], slices: [], owner, volumes: [] };
  await cluster.runs.start(run, () => Promise.resolve(true));
  const soon = AbortSignal.timeout(60_000 * timeoutFactor);
  expect(await cluster.observePods([ref], soon)).toMatchObject([{ trouble: { code: 'image_not_found' } }]);
  await cluster.stopPod(ref, 0, soon);
  const messages: string[] = [];
  for await (const { lines, isComplete } of cluster.readLogs(ref, null, soon)) {
    messages.push(...lines.map(({ message }) => message));
    if (isComplete) break;
  }
  expect(messages).toEqual([]);
  await world.close();
});
