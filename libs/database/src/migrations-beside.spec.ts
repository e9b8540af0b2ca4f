import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { createDatabase, lockWaits, type TestDatabase, untilLockWaits } from '@atoll/testing';
import pg from 'pg';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { bankOptions, CreateAccounts1790000000000 } from './account-fixture.js';
import { createIndex, dropIndex } from './concurrent-indexes.js';
import { timeoutsOf, type DatabaseOptions } from './data-source.js';
import { openDataSource } from './open-data-source.js';

class Currency1790000000001 implements MigrationInterface {
  readonly name = 'Currency1790000000001';
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE account ADD currency text NOT NULL DEFAULT 'EUR'`);
  }
  async down(): Promise<void> {}
}

class IndexAccounts1790000000002 implements MigrationInterface {
  readonly name: string = 'IndexAccounts1790000000002';
  readonly transaction = false;
  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, 'CREATE INDEX account_rich ON account (balance_in_cents) WHERE balance_in_cents > 0');
    await dropIndex(runner, 'account_balance');
  }
  async down(): Promise<void> {}
}

const before = [CreateAccounts1790000000000];
const after = [...before, Currency1790000000001, IndexAccounts1790000000002];

let database: TestDatabase;
let log: string[];
let open: { destroy(): Promise<void> }[];

beforeEach(async () => {
  database = await createDatabase();
  log = [];
  open = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => log.push(message));
  jest.spyOn(Logger.prototype, 'log').mockImplementation((message: string) => log.push(message));
});
afterEach(async () => {
  await Promise.all(open.map((each) => each.destroy()));
  await database.drop();
  jest.restoreAllMocks();
});

/** As a process of the release with these migrations. */
async function start(migrations: DatabaseOptions['migrations'], lockMs = 50): Promise<DataSource> {
  const dataSource = await openDataSource(bankOptions(database.url, { migrations, timeouts: { lockMs } }));
  open.push(dataSource);
  return dataSource;
}

async function session(name: string): Promise<pg.Client> {
  const url = new URL(database.url);
  url.searchParams.set('application_name', name);
  const client = new pg.Client(url.href);
  await client.connect();
  await client.query('SET search_path = bank');
  open.push({ destroy: () => client.end() });
  return client;
}

/** A dump reads every table in one transaction. */
async function startDump(): Promise<pg.Client> {
  const dump = await session('pg_dump');
  await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  await dump.query('LOCK TABLE account IN ACCESS SHARE MODE');
  await dump.query('SELECT count(*) FROM account');
  return dump;
}

const until = async (holds: () => unknown): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
};
const migrationsOf = async (dataSource: DataSource) =>
  (await dataSource.query<{ name: string }[]>('SELECT name FROM migration ORDER BY id')).map(({ name }) => name);
const indexesOf = (dataSource: DataSource) =>
  dataSource.query<{ name: string; isValid: boolean }[]>(
    `SELECT relname AS name, indisvalid AS "isValid" FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE indrelid = 'account'::regclass AND NOT indisprimary ORDER BY 1`,
  );
const waiting =
  /^The migration of bank waits for locks, and goes on by itself\. In its way: (.*pg_dump \(process \d+\).*|a session)$/;

describe('migrations of a release, beside replicas of the one before', () => {
  let old: DataSource;

  beforeEach(async () => {
    old = await start(before);
    await old.query('CREATE INDEX account_balance ON account (balance_in_cents)');
    await old.query(`INSERT INTO account SELECT 'account ' || no, no FROM generate_series(0, 99) no`);
    log.length = 0;
  });

  /** Reads and writes of the release before, one after the other, while `holds` does not. */
  async function workUntil(holds: () => unknown): Promise<number> {
    let done = 0;
    for (; done < 20 || !(await holds()); done += 1) {
      await old.query(`UPDATE account SET balance_in_cents = balance_in_cents + 1 WHERE name = 'account 7'`);
      await old.query(`SELECT FROM account WHERE name = 'account 7'`);
    }
    return done;
  }

  it('wait for a dump, in whose time the replicas read and write, and come through when it ends', async () => {
    const dump = await startDump();
    const starting = start(after);
    // It has tried, was undone, and says what it waits for.
    await workUntil(() => log.length > 0);
    expect(log).toEqual([expect.stringMatching(waiting)]);
    expect(await migrationsOf(old)).toEqual(['CreateAccounts1790000000000']);
    await dump.query('COMMIT');
    const started = await starting;
    expect(await migrationsOf(started)).toEqual(after.map(({ name }) => name));
    expect(await indexesOf(started)).toEqual([{ name: 'account_rich', isValid: true }]);
    expect(log.slice(1)).toEqual(['Migrated bank: Currency1790000000001, IndexAccounts1790000000002']);
  });

  it('say once that they wait, however often they try', async () => {
    const dump = await startDump();
    const attempts = jest.spyOn(Currency1790000000001.prototype, 'up');
    const starting = start(after, 5);
    await until(() => attempts.mock.calls.length > 4);
    await dump.query('COMMIT');
    await starting;
    expect(log.filter((line) => line.includes('waits for locks'))).toHaveLength(1);
  });

  it('create and drop indexes while a dump goes on, in nobody’s way, and say so', async () => {
    await start([...before, Currency1790000000001]);
    log.length = 0;
    const dump = await startDump();
    const attempts = jest.spyOn(IndexAccounts1790000000002.prototype, 'up');
    const starting = start(after, 5);
    // Nobody else is in its way for long, however busy the machine is.
    await until(() => log.length > 0);
    await workUntil(() => true);
    expect(log).toEqual([expect.stringMatching(/ In its way: pg_dump \(process \d+\)$/)]);
    expect(await indexesOf(old)).toContainEqual({ name: 'account_balance', isValid: true });
    await dump.query('COMMIT');
    expect(await indexesOf(await starting)).toEqual([{ name: 'account_rich', isValid: true }]);
    expect(attempts).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['for the lock of a table', Currency1790000000001],
    ['with an index', IndexAccounts1790000000002],
  ])(
    'stop at once when they are told to while they wait %s, and leave no session that waits',
    async (_what, migration) => {
      await startDump();
      const stopping = new AbortController();
      const timeouts = { lockMs: 1_000_000 };
      const starting = openDataSource(
        bankOptions(database.url, { migrations: [...before, migration], timeouts, stopping: stopping.signal }),
      ).catch((error: unknown) => error);
      await untilLockWaits(old);
      stopping.abort();
      expect(await starting).toBe(stopping.signal.reason);
      await until(async () => (await lockWaits(old)).length === 0);
    },
  );

  it('run once where replicas start together, one of which waits for the other', async () => {
    const [one] = await Promise.all([start(after), start(after), start(after)]);
    expect(one && (await migrationsOf(one))).toEqual(after.map(({ name }) => name));
    expect(await indexesOf(old)).toEqual([{ name: 'account_rich', isValid: true }]);
  });

  it.each(['CREATE', 'DROP'])('go on after a crash in the midst of %s INDEX', async (statement) => {
    if (statement === 'DROP')
      await old.query('CREATE INDEX account_rich ON account (balance_in_cents) WHERE balance_in_cents > 0');
    const dump = await startDump();
    const crashing = start([...before, IndexAccounts1790000000002]).catch(String);
    await until(async () => (await indexesOf(old)).some(({ isValid }) => !isValid));
    await old.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1 AND datname = current_database()',
      [`${statement} INDEX CONCURRENTLY%`],
    );
    expect(await crashing).toMatch(/terminat/);
    expect(await indexesOf(old)).toEqual([
      { name: 'account_balance', isValid: statement === 'CREATE' },
      { name: 'account_rich', isValid: statement === 'DROP' },
    ]);
    await dump.query('COMMIT');
    expect(await indexesOf(await start(after))).toEqual([{ name: 'account_rich', isValid: true }]);
  });

  it.each(['CREATE', 'DROP'])('go on after a crash before %s INDEX', async (statement) => {
    class Crashing1790000000002 extends IndexAccounts1790000000002 {
      override async up(runner: QueryRunner): Promise<void> {
        const query = runner.query.bind(runner);
        runner.query = ((text: string, values?: unknown[]) =>
          text.startsWith(statement) ? Promise.reject(new Error('crash')) : query(text, values)) as typeof query;
        await super.up(runner);
      }
    }
    await expect(start([...before, Currency1790000000001, Crashing1790000000002])).rejects.toThrow('crash');
    expect(await indexesOf(await start(after))).toEqual([{ name: 'account_rich', isValid: true }]);
  });
});

it('a migration waits for longer than PostgreSQL takes to end an autovacuum that is in its way', async () => {
  const dataSource = await start(before);
  const [deadlock] = await dataSource.query<{ ms: number }[]>(
    `SELECT setting::int AS ms FROM pg_settings WHERE name = 'deadlock_timeout'`,
  );
  expect(timeoutsOf(bankOptions(database.url)).lockMs).toBeGreaterThan(deadlock!.ms + 100);
});

describe('createIndex', () => {
  it('refuses a statement that names no index, which it could not find again', async () => {
    class Nameless1790000000001 implements MigrationInterface {
      readonly name = 'Nameless1790000000001';
      readonly transaction = false;
      up(runner: QueryRunner): Promise<void> {
        return createIndex(runner, 'CREATE INDEX ON account (balance_in_cents)');
      }
      async down(): Promise<void> {}
    }
    await expect(start([...before, Nameless1790000000001])).rejects.toThrow(
      'Expected CREATE [UNIQUE] INDEX <name> ON <table>',
    );
  });
});
