import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase } from '@atoll/testing';
import { expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { tables, type SimulatedStore } from './simulated-store.js';
import { SimulatedWorld } from './simulated-world.js';

const doors = 40;

it('many doors that are to be opened at once, as at a start, ask the store a few statements at a time', async () => {
  const database = await createDatabase();
  const dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  const rows = rowsOf(dataSource);
  let [underWay, most] = [0, 0];
  const store: SimulatedStore = {
    query: (sql, values) => {
      most = Math.max(most, (underWay += 1));
      return rows.query(sql, values).finally(() => (underWay -= 1)) as never;
    },
  };
  const world = new SimulatedWorld({ store, listenHost: '127.0.0.1', secrets: new Sealer(Sealer.createKeys()), pullMs: 0 });
  await world.ready();
  const owner = { installationId: 'one', teamId: 'team', gpuaasId: '1' } as never;
  const ref = { kind: 'pod' as const, id: 'pod', run: 1 };
  await world
    .cluster('one')
    .runs.start({ ref, podName: 'port-taken', image: 'idle:1', command: [], slices: [], owner, volumes: [] }, () => Promise.resolve(true));
  await rows.query(
    `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port)
     SELECT 'one', 'svc-' || n, 1, 'pod', 'tcp', 80, 30000 + n FROM generate_series(1, $1::integer) n`,
    [doors],
  );
  world.listen();
  const tried = `SELECT FROM ${tables.door} WHERE trouble = 'EADDRINUSE'`;
  while ((await rows.query(tried)).length < doors) await delay(5);
  // Besides, what has changed is looked for.
  expect(most).toBeLessThan(10);
  await world.close();
  await dataSource.destroy();
  await database.drop();
});
