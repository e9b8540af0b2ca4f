import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import { DataSource, type QueryRunner } from 'typeorm';
import {
  addFailedIndex,
  addLanes,
  addParkedRetriedIndex,
  addRestIndexes,
  dropFailedIndex,
  dropLanes,
  dropParkedRetriedIndex,
  dropRestIndexes,
  dueIndex,
  machineColumns,
} from './machine-migrations.js';

let database: TestDatabase;
let dataSource: DataSource;
let runner: QueryRunner;
beforeAll(async () => {
  database = await createDatabase();
  dataSource = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  runner = dataSource.createQueryRunner();
  await runner.query(`CREATE TABLE buoy (name text PRIMARY KEY, ${machineColumns})`);
  await runner.query(dueIndex('buoy'));
});
afterAll(async () => {
  await runner?.release();
  await dataSource?.destroy();
  await database?.drop();
});

const rowsOf = (sql: string) => runner.query(sql) as Promise<object[]>;
const shape = async (): Promise<object[]> => [
  ...(await rowsOf(
    `SELECT column_name, data_type, column_default, is_nullable FROM information_schema.columns WHERE table_name = 'buoy' ORDER BY 1`,
  )),
  ...(await rowsOf(`SELECT indexdef FROM pg_indexes WHERE tablename = 'buoy' ORDER BY 1`)),
];
/** Of each row: how many hours from now it is due, and until when it is parked. */
const hours = () =>
  rowsOf(
    `SELECT name, round(extract(epoch FROM due_at - now()) / 3600)::int AS due,
       round(extract(epoch FROM (to_jsonb(buoy) ->> 'parked_until')::timestamptz - now()) / 3600)::int AS parked FROM buoy ORDER BY name`,
  );

it('each step of a machine’s table can be taken back, and leaves it as it was', async () => {
  const steps = [
    [addLanes, dropLanes],
    [addFailedIndex, dropFailedIndex],
    [addParkedRetriedIndex, dropParkedRetriedIndex],
    [addRestIndexes, dropRestIndexes],
  ] as const;
  const shapes: object[][] = [];
  for (const [add] of steps) {
    shapes.push(await shape());
    await add(runner, 'buoy');
    expect(await shape()).not.toEqual(shapes.at(-1));
  }
  for (const [, drop] of steps.toReversed()) {
    await drop(runner, 'buoy');
    expect(await shape()).toEqual(shapes.pop());
  }
});

it('rows that were due later are parked until then, but for one that is claimed, and are due then again', async () => {
  await runner.query(
    `INSERT INTO buoy (name, state, due_at, claim_token) VALUES
       ('claimed', 'lit', now() + interval '5 hours', gen_random_uuid()), ('due', 'lit', now() - interval '1 hour', NULL),
       ('idle', 'lit', NULL, NULL), ('later', 'lit', now() + interval '2 hours', NULL)`,
  );
  const before = await hours();
  await addLanes(runner, 'buoy');
  expect(await hours()).toEqual([
    { name: 'claimed', due: 5, parked: null },
    { name: 'due', due: -1, parked: null },
    { name: 'idle', due: null, parked: null },
    { name: 'later', due: null, parked: 2 },
  ]);
  await dropLanes(runner, 'buoy');
  expect(await hours()).toEqual(before);
});
