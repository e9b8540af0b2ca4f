import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { DatabaseModule, Statements, Transactions } from '@atoll/database';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { FirstSnapshot, type SnapshotPage } from './first-snapshot.js';
import { eventually } from './world/eventually-fixture.js';

let database: TestDatabase;
let app: INestApplicationContext;
let dataSource: DataSource;
beforeAll(async () => {
  database = await createDatabase();
  app = await NestFactory.createApplicationContext(
    DatabaseModule.forRoot({ schema: 'harbour', url: database.url, entities: [], migrations: [] }),
  );
  dataSource = app.get(DataSource);
  await dataSource.query(
    'CREATE TABLE ship (name text PRIMARY KEY); CREATE TABLE ship_snapshot (completed_at timestamptz NOT NULL)',
  );
});
beforeEach(() => dataSource.query('TRUNCATE ship, ship_snapshot'));
afterAll(async () => {
  await app.close();
  await database.drop();
});

const known = async () =>
  (await dataSource.query<{ name: string }[]>('SELECT name FROM ship ORDER BY name')).map(({ name }) => name);
const isComplete = async () => (await dataSource.query<object[]>('SELECT FROM ship_snapshot')).length === 1;

/** Of ships that an owner tells of by twos, where it is there. */
class Ships extends FirstSnapshot {
  asked = 0;
  private told = 0;

  constructor(
    private readonly names: readonly string[],
    private readonly before: (asked: number) => Promise<void> | void = () => undefined,
  ) {
    super('ship_snapshot', app.get(Statements), app.get(Transactions));
  }

  protected async nextPage(): Promise<SnapshotPage | undefined> {
    this.asked += 1;
    await this.before(this.asked);
    const page = this.names.slice(this.told, this.told + 2);
    if (page.length === 0) return undefined;
    return {
      write: async (manager) => void (await manager.query('INSERT INTO ship SELECT unnest($1::text[])', [page])),
      taken: () => (this.told += page.length),
    };
  }
}

it('is fetched page by page, each once the one before is committed, and said to be complete at the end', async () => {
  const found: string[][] = [];
  const ships = new Ships(['a', 'b', 'c'], async () => void found.push(await known()));
  ships.onApplicationBootstrap();
  await eventually(async () => expect(await isComplete()).toBe(true));
  expect(found).toEqual([[], ['a', 'b'], ['a', 'b', 'c']]);
  await ships.onModuleDestroy();
});

it('is not fetched again', async () => {
  await dataSource.query('INSERT INTO ship_snapshot VALUES (now())');
  const ships = new Ships(['a']);
  ships.onApplicationBootstrap();
  await ships.onModuleDestroy();
  expect([ships.asked, await known()]).toEqual([0, []]);
});

it('goes on from where it failed when its owner is there again', async () => {
  const ships = new Ships(['a', 'b', 'c'], (asked) => {
    if (asked === 2) throw new Error('The owner is away.');
  });
  ships.onApplicationBootstrap();
  await eventually(async () => expect(await isComplete()).toBe(true));
  expect([ships.asked, await known()]).toEqual([4, ['a', 'b', 'c']]);
  await ships.onModuleDestroy();
});

it('ends with the service, and is not complete then', async () => {
  const held = Promise.withResolvers<void>();
  const ships = new Ships(['a', 'b', 'c'], (asked) => (asked === 2 ? held.promise : undefined));
  ships.onApplicationBootstrap();
  await eventually(async () => expect(await known()).toEqual(['a', 'b']));
  const ended = ships.onModuleDestroy();
  held.resolve();
  await ended;
  expect(await isComplete()).toBe(false);
});
