import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase, mostRowsRead, ownPorts, type TestDatabase } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { SimulatedDoors } from './simulated-doors.js';
import { tables, type SimulatedStore } from './simulated-store.js';
import { SimulatedWorld } from './simulated-world.js';

interface Sent {
  readonly text: string;
  readonly values: unknown[];
  readonly rows: number;
}

let database: TestDatabase;
let dataSource: DataSource;
let rows: SimulatedStore;
let world: SimulatedWorld;
let sent: Sent[] = [];
let beforeQuery: (text: string) => Promise<void> = () => Promise.resolve();
const secrets = new Sealer(Sealer.createKeys());

beforeAll(async () => {
  database = await createDatabase();
  dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  rows = rowsOf(dataSource);
  const store: SimulatedStore = {
    query: async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> => {
      await beforeQuery(text);
      const found = await rows.query<Row>(text, values);
      sent.push({ text, values, rows: found.length });
      return found;
    },
  };
  world = new SimulatedWorld({ store, listenHost: '127.0.0.1', secrets, pullMs: 0 });
  await world.ready();
});
afterAll(async () => {
  await world.close();
  await dataSource.destroy();
  await database.drop();
});

/** Looks at doors, but for those at all of them. */
const looks = () => sent.filter(({ text, values }) => text.includes('AS "sealedTls"') && values[0] !== true);
const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await delay(5);
};
const firstPort = Number(ownPorts().split('-')[0]);

async function insert(from: number, count: number): Promise<void> {
  await rows.query(
    `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port, changed_at)
     SELECT 'one', 'door-' || n, 1, 'pod', 'tcp', 80, $1::integer + n, now() - interval '1 hour' FROM generate_series($2::integer, $3::integer) n`,
    [firstPort, from, from + count - 1],
  );
}

const areOpen = async (count: number): Promise<boolean> => {
  const open = await rows.query(`SELECT FROM ${tables.door} WHERE opened_by IS NOT NULL`);
  return open.length === count;
};

it.each([false, true])(
  'of 10,000 doors and 10,000 runs of which none changes, a look for changes reads few (statistics: %s)',
  async (hasStatistics) => {
    await rows.query(`TRUNCATE ${tables.door}, ${tables.run}`);
    await insert(0, 10_000);
    await rows.query(
      `INSERT INTO ${tables.run} (cluster, kind, id, run, name, spec, requested_at, ready_at, ends_at)
       SELECT 'one', 'pod', n, 1, '', '{}', now() - interval '1 day', now() - interval '1 day', now() - interval '1 hour' FROM generate_series(1, 10000) n`,
    );
    if (hasStatistics) await rows.query(`ANALYZE ${tables.door}, ${tables.run}`);
    sent = [];
    const watch = new AbortController();
    const hints = world.changes('one', watch.signal);
    const ended = hints.next();
    const isLook = ({ text }: Sent) => text.includes('next_ms');
    await until(() => sent.some(isLook));
    watch.abort();
    await ended;
    const { text, values } = sent.find(isLook)!;
    expect(await mostRowsRead(rows, { text, values })).toBeLessThan(100);
  },
);

it('reads the doors that are to be opened or have just changed, and not those that are open', async () => {
  await rows.query(`TRUNCATE ${tables.door}, ${tables.run}`);
  await insert(0, 5);
  world.listen();
  await until(() => areOpen(5));
  await rows.query(`UPDATE ${tables.door} SET changed_at = now() - interval '1 hour'`);
  sent = [];
  await insert(5, 1);
  world.ring();
  await until(async () => (await areOpen(6)) && looks().length > 0);
  for (const look of looks()) expect(look.rows).toBeLessThanOrEqual(1);
});

it('a new certificate of an open door is seen, also where another process has written it', async () => {
  const other = new SimulatedDoors(rows, 'one', secrets, () => undefined);
  const ref = { kind: 'door', id: 'door-0', run: 1 } as const;
  await rows.query(
    `UPDATE ${tables.door} SET changed_at = now() - interval '1 hour', sealed_tls = CASE id WHEN 'door-0' THEN $1 END`,
    [secrets.seal('null', 'simulated_cluster.door.tls:one:door-0')],
  );
  sent = [];
  await other.open({ ref, podId: 'pod', transport: 'tcp', port: 80, externalPort: firstPort, tls: null } as never);
  await until(() => looks().some((look) => look.rows === 1));
  expect(await rows.query(`SELECT FROM ${tables.door} WHERE sealed_tls IS NOT NULL`)).toEqual([]);
});

it('a door that is removed before its listener is noted is closed at once', async () => {
  beforeQuery = async (text) => {
    if (text.includes('SET opened_by')) await rows.query(`DELETE FROM ${tables.door} WHERE id = 'door-6'`);
  };
  await insert(6, 1);
  const isNoted = (each: Sent) => each.text.includes('SET opened_by') && each.values[1] === 'door-6';
  world.ring();
  await until(() => sent.some(isNoted));
  sent = [];
  // The look that has opened it is over.
  await until(() => looks().length > 0);
  beforeQuery = () => Promise.resolve();
  const isClosed = await new Promise<boolean>((resolve) => {
    const socket = connect(firstPort + 6, '127.0.0.1', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
  expect(isClosed).toBe(true);
});

it('a removal wakes the listeners if there is such a door, once', async () => {
  let rung = 0;
  const doors = new SimulatedDoors(rows, 'two', secrets, () => (rung += 1));
  const ref = { kind: 'door', id: 'svc-1', run: 1 } as const;
  await doors.remove(ref);
  expect(rung).toBe(0);
  await rows.query(
    `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port) VALUES ('two', 'svc-1', 1, 'pod', 'udp', 53, $1)`,
    [firstPort + 50],
  );
  await doors.remove(ref);
  await doors.remove(ref);
  expect(rung).toBe(1);
});
