import { afterEach, describe, expect, it } from '@jest/globals';
import { createIndex, dropIndex, openDataSource } from '@atoll/database';
import { createDatabase } from '@atoll/testing';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { lockFaults, upgradeFaults } from './upgrade.js';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Up = (runner: QueryRunner) => Promise<unknown>;

/** A migration of before the rule makes a harbour and its berths; these are what an author writes after it. */
async function faultsOf(up: Up, transaction?: false): Promise<string[]> {
  class Harbour1790000000000 implements MigrationInterface {
    readonly name = 'Harbour1790000000000';
    async up(runner: QueryRunner): Promise<void> {
      await runner.query('CREATE TABLE harbour (id integer PRIMARY KEY, name text)');
      await runner.query('CREATE TABLE berth (id integer PRIMARY KEY, name text)');
      await runner.query('CREATE INDEX berth_name ON berth (name)');
    }
    async down(): Promise<void> {}
  }
  class Newer1890000000000 implements MigrationInterface {
    readonly name = 'Newer1890000000000';
    readonly transaction = transaction;
    async up(runner: QueryRunner): Promise<void> {
      await up(runner);
    }
    async down(): Promise<void> {}
  }
  const [fresh, upgraded] = [await createDatabase(), await createDatabase()];
  closing.push(fresh.drop, upgraded.drop);
  const options = { schema: 'port', entities: [], migrations: [Harbour1790000000000, Newer1890000000000] };
  const dataSource = await openDataSource({ ...options, url: fresh.url });
  closing.push(() => dataSource.destroy());
  return upgradeFaults({ schema: 'port', url: upgraded.url }, dataSource);
}

describe('the check of upgrades', () => {
  it('is content with indexes that are made and dropped concurrently, and with statements that may run again', async () => {
    const up: Up = async (runner) => {
      await runner.query('ALTER TABLE berth ADD COLUMN IF NOT EXISTS depth integer');
      await runner.query('ALTER TABLE harbour ADD COLUMN IF NOT EXISTS depth integer');
      await createIndex(runner, 'CREATE UNIQUE INDEX berth_depth ON berth (name, depth)');
      await dropIndex(runner, 'berth_name');
    };
    expect(await faultsOf(up, false)).toEqual([]);
  });

  it('is content with a new table, its indexes, and a change of one other', async () => {
    const up: Up = async (runner) => {
      await runner.query('CREATE TABLE boat (id integer PRIMARY KEY, berth integer REFERENCES berth)');
      await runner.query('CREATE INDEX ON boat (berth)');
      await runner.query('ALTER TABLE berth ADD depth integer');
    };
    expect(await faultsOf(up)).toEqual([]);
  });

  it('says what to write in place of an index that stops others, whether it is written plainly or lacks `transaction = false`', async () => {
    const created =
      'port: Newer1890000000000: CREATE INDEX stops all who write berth until it is built: use createIndex of @atoll/database, in a migration with transaction = false';
    const dropped =
      'port: Newer1890000000000: DROP INDEX stops all who use berth: use dropIndex of @atoll/database, in a migration with transaction = false';
    expect(
      await faultsOf(async (runner) => {
        await runner.query('CREATE INDEX ON berth (id, name)');
        await runner.query('DROP INDEX berth_name');
      }),
    ).toEqual([created, dropped]);
    expect(await faultsOf((runner) => createIndex(runner, 'CREATE INDEX berth_both ON berth (id, name)'))).toEqual([
      created,
    ]);
    expect(await faultsOf((runner) => dropIndex(runner, 'berth_name'))).toEqual([dropped]);
  });

  it('names tables that are locked together', async () => {
    const up: Up = async (runner) => {
      await runner.query('ALTER TABLE berth ADD depth integer');
      await runner.query('ALTER TABLE harbour ADD depth integer');
    };
    expect(await faultsOf(up)).toEqual([
      expect.stringMatching(/^port: Newer1890000000000: locks berth, harbour together/),
    ]);
  });

  it('names what does not run again after a crash', async () => {
    const up: Up = async (runner) => {
      await runner.query('ALTER TABLE berth ADD depth integer');
      await createIndex(runner, 'CREATE INDEX berth_depth ON berth (depth)');
    };
    expect(await faultsOf(up, false)).toContainEqual(
      expect.stringMatching(/does not run again after a crash: column "depth" of relation "berth" already exists/),
    );
  });

  it('names what runs again where all of it was done or nothing, but not from in between', async () => {
    const up: Up = async (runner) => {
      const [berth] = (await runner.query(
        `SELECT count(*)::int AS columns FROM information_schema.columns WHERE table_name = 'berth' AND column_name IN ('depth', 'width')`,
      )) as { columns: number }[];
      if (berth?.columns === 2) return;
      await runner.query('ALTER TABLE berth ADD depth integer');
      await runner.query('ALTER TABLE berth ADD width integer');
    };
    expect(await faultsOf(up, false)).toContainEqual(
      expect.stringMatching(
        /column "depth" of relation "berth" already exists\. The crash came before ALTER TABLE berth ADD width/,
      ),
    );
  });

  it('names what an upgrade and a first start do not both end in', async () => {
    const column = (runner: QueryRunner) => (runner.isTransactionActive ? 'depth' : 'width');
    const up: Up = (runner) => runner.query(`ALTER TABLE berth ADD COLUMN IF NOT EXISTS ${column(runner)} integer`);
    expect(await faultsOf(up, false)).toEqual([
      expect.stringContaining('an upgrade does not end in column berth depth'),
      expect.stringContaining('a first start does not end in column berth width'),
    ]);
  });
});

describe('lockFaults', () => {
  const existing = { tables: new Set(['berth']), indexes: new Map([['berth_name', 'berth']]) };

  it.each([
    'CREATE INDEX ON berth (name)',
    'CREATE UNIQUE INDEX IF NOT EXISTS berth_x ON ONLY "port".berth (name)',
    'SELECT 1; create index berth_x\n  on "berth" USING btree (name)',
    'DROP INDEX berth_name',
    'DROP INDEX IF EXISTS other, "port"."berth_name" CASCADE',
  ])('finds %s', (statement) => {
    expect(lockFaults(statement, existing)).toHaveLength(1);
  });

  it.each([
    'CREATE INDEX CONCURRENTLY berth_x ON berth (name)',
    'DROP INDEX CONCURRENTLY IF EXISTS berth_name',
    'CREATE INDEX ON boat (name)',
    'DROP INDEX boat_name',
    'CREATE TABLE boat (id integer)',
  ])('has nothing against %s', (statement) => {
    expect(lockFaults(statement, existing)).toEqual([]);
  });
});
