import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase, freePort, type TestDatabase } from '@atoll/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { connect, createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import type { DoorSight } from '../observations.js';
import { prepareStore, tables, type SimulatedStore } from './simulated-store.js';
import { SimulatedWorld } from './simulated-world.js';

let database: TestDatabase;
let dataSource: DataSource;
let rows: SimulatedStore;
let [underWay, most] = [0, 0];
let world: SimulatedWorld;

beforeAll(async () => {
  database = await createDatabase();
  dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  rows = rowsOf(dataSource);
  const store: SimulatedStore = {
    query: (sql, values) => {
      most = Math.max(most, (underWay += 1));
      return rows.query(sql, values).finally(() => (underWay -= 1)) as never;
    },
  };
  world = new SimulatedWorld({ store, listenHost: '127.0.0.1', secrets: new Sealer(Sealer.createKeys()), pullMs: 0 });
  await world.ready();
  world.listen();
});
afterAll(async () => {
  await world.close();
  await dataSource.destroy();
  await database.drop();
});

async function start(id: string, podName: string): Promise<void> {
  const owner = { installationId: 'one', teamId: 'team', gpuaasId: '1' } as never;
  const pod = {
    ref: { kind: 'pod' as const, id, run: 1 },
    podName,
    image: 'plain:1',
    command: [],
    slices: [],
    owner,
    volumes: [],
  };
  await world.cluster('one').runs.start(pod, () => Promise.resolve(true));
}

async function open(pod: string, name: string, count: number, port: number): Promise<void> {
  await rows.query(
    `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port)
     SELECT 'one', $1 || n, 1, $2, 'tcp', 80, $3::integer + n FROM generate_series(0, $4::integer - 1) n`,
    [name, pod, port, count],
  );
  world.ring();
}

const eventually = async (condition: string): Promise<void> => {
  while ((await rows.query<{ holds: boolean }>(`SELECT (${condition}) AS holds`))[0]?.holds !== true) await delay(5);
};

it('many doors that are to be opened at once, as at a start, ask the store a few statements at a time', async () => {
  await start('taken', 'port-taken');
  most = 0;
  await open('taken', 'taken-', 40, 30_000);
  await eventually(`(SELECT count(*) FROM ${tables.door} WHERE trouble = 'EADDRINUSE') = 40`);
  // Besides, what has changed is looked for.
  expect(most).toBeLessThan(10);
});

it('much that is sent to a pod is answered in turns, so that the store is asked little at once, and old lines go', async () => {
  await start('busy', 'train');
  const port = await freePort();
  await open('busy', 'busy-', 1, port);
  await eventually(`EXISTS (SELECT FROM ${tables.door} WHERE pod_id = 'busy' AND opened_by IS NOT NULL)`);
  await rows.query(
    `INSERT INTO ${tables.line} (cluster, id, run, message, at) SELECT 'one', 'busy', 1, 'old', clock_timestamp() - interval '2 hours'
     FROM generate_series(1, 250)`,
  );
  most = 0;
  const clients = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const client = connect({ host: '127.0.0.1', port });
      client.end('hello\nagain\n');
      return text(client);
    }),
  );
  expect(new Set(clients)).toEqual(new Set(['train: hello\ntrain: again\n']));
  expect(most).toBeLessThan(10);
  await eventually(`(SELECT count(*) FROM ${tables.line} WHERE id = 'busy') = 60`);
});

it('an address that is none of this machine is no taken port: doors wait and say so, and the operator is told once', async () => {
  const database = await createDatabase();
  const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  const rows = rowsOf(dataSource);
  const warned: string[] = [];
  const warn = (sentence: string) => void warned.push(sentence);
  const world = new SimulatedWorld({
    store: rows,
    listenHost: '203.0.113.7',
    secrets: new Sealer(Sealer.createKeys()),
    pullMs: 0,
    warn,
  });
  await world.ready();
  await rows.query(
    `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port)
     SELECT 'one', 'svc-' || n, 1, 'pod', transport, 80, 30000 + n FROM unnest('{tcp,udp}'::text[]) WITH ORDINALITY tried (transport, n)`,
  );
  world.listen();
  const refs = ['svc-1', 'svc-2'].map((id) => ({ kind: 'door' as const, id, run: 1 }));
  const see = () => world.cluster('one').observeDoors(refs, new AbortController().signal);
  const isTold = (sight: DoorSight) => sight.phase === 'opening' && sight.trouble !== null;
  let sights = await see();
  for (; !sights.every(isTold); sights = await see()) await delay(5);
  const trouble = { code: 'unreachable', message: 'The cluster cannot listen on its public address at the moment.' };
  expect(sights).toEqual(refs.map(() => ({ phase: 'opening', trouble })));
  expect(warned).toEqual([
    expect.stringMatching(/^Cannot listen on 203\.0\.113\.7 for exposed services; they wait: .*EADDRNOTAVAIL/),
  ]);
  await world.close();
  await dataSource.destroy();
  await database.drop();
});

it('a door whose row cannot be written is open all the same, and none is opened twice: the port of no other is taken', async () => {
  const own = await createDatabase();
  const source = await new DataSource({ type: 'postgres', url: own.url }).initialize();
  const whole = rowsOf(source);
  const warned: string[] = [];
  const troubles = new Set<unknown>();
  let [refusals, late] = [2, 0];
  const store: SimulatedStore = {
    query: async (sql, values) => {
      if (sql.startsWith(`UPDATE ${tables.door}`)) {
        troubles.add(values?.[4]);
        if (values?.[1] === 'lost' && (refusals -= 1) >= 0) throw new Error('timeout');
      }
      // The next look would come to this door too meanwhile.
      if (values?.[1] === 'late' && sql.startsWith('SELECT name') && (late += 1) === 1) {
        for (const untilMs = Date.now() + 1_000; late === 1 && Date.now() < untilMs;) await delay(5);
      }
      return whole.query(sql, values);
    },
  };
  const world = new SimulatedWorld({
    store,
    listenHost: '127.0.0.1',
    secrets: new Sealer(Sealer.createKeys()),
    pullMs: 0,
    warn: (sentence) => void warned.push(sentence),
  });
  await world.ready();
  for (const pod of ['lost', 'late']) {
    await whole.query(
      `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port) VALUES ('one', $1, 1, $1, 'tcp', 80, $2)`,
      [pod, await freePort()],
    );
  }
  world.listen();
  const areOpen = `SELECT FROM ${tables.door} WHERE opened_by IS NOT NULL AND trouble IS NULL`;
  while ((await whole.query(areOpen)).length < 2) await delay(5);
  await world.close();
  expect({ warned, troubles: [...troubles] }).toEqual({ warned: [], troubles: [null] });
  await source.destroy();
  await own.drop();
});

it('doors wait for ports that a frozen process keeps whose claim was taken over, for a minute', async () => {
  const database = await createDatabase();
  const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  const rows = rowsOf(dataSource);
  const secrets = new Sealer(Sealer.createKeys());
  const world = new SimulatedWorld({ store: rows, listenHost: '127.0.0.1', secrets, pullMs: 0 });
  await world.ready();
  const frozen = createServer().listen(0, '127.0.0.1');
  await once(frozen, 'listening');
  const { port } = frozen.address() as AddressInfo;
  const add = (id: string, external: number, openedBy: string | null) =>
    rows.query(
      `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port, opened_by) VALUES ('one', $1, 1, 'pod', 'tcp', 80, $2, $3)`,
      [id, external, openedBy],
    );
  const see = async (id: string) =>
    (await world.cluster('one').observeDoors([{ kind: 'door', id, run: 1 }], new AbortController().signal))[0];
  const untilOpen = async (id: string) => {
    while ((await see(id))?.phase !== 'open') await delay(5);
  };
  /** Looks are one after the other: when the second of two has begun, the first has brought all doors. */
  const haveAllBrought = async (name: string) => {
    for (const id of [`${name}-1`, `${name}-2`]) {
      await add(id, await freePort(), null);
      world.ring();
      await untilOpen(id);
    }
  };
  const former = randomUUID();
  await rows.query(`INSERT INTO ${tables.claim} VALUES ('listeners', $1, clock_timestamp() - interval '1 second')`, [
    former,
  ]);
  await add('svc-1', port, former);
  await add('svc-2', port, null);
  world.listen();
  await haveAllBrought('early');
  const waiting = { phase: 'opening', trouble: null };
  expect([await see('svc-1'), await see('svc-2')]).toEqual([waiting, waiting]);

  const now = performance.now.bind(performance);
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
  await haveAllBrought('late');
  clock.mockRestore();
  expect(await see('svc-1')).toMatchObject({ phase: 'opening', trouble: { code: 'port_in_use' } });

  await rows.query(`DELETE FROM ${tables.door} WHERE id = 'svc-2'`);
  frozen.close();
  await once(frozen, 'close');
  world.ring();
  await untilOpen('svc-1');
  await world.close();
  await dataSource.destroy();
  await database.drop();
});

it('a process that starts on a store that is whole waits for nobody who reads it, as a dump does', async () => {
  const dump = dataSource.createQueryRunner();
  await dump.startTransaction();
  try {
    await dump.query(`LOCK TABLE ${Object.values(tables).join(', ')} IN ACCESS SHARE MODE`);
    await prepareStore(rows);
    await rows.query(`SELECT FROM ${tables.volume}`);
  } finally {
    await dump.rollbackTransaction();
    await dump.release();
  }
});
