import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DatabaseModule, migrationDrift } from '@atoll/database';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import { NestFactory } from '@nestjs/core';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { eventEntities } from './event-entities.js';
import { createEventTables, dropEventTables } from './event-tables.js';

const schema = 'depot';

class CreateTables1700000000000 implements MigrationInterface {
  readonly name: string = 'CreateTables1700000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, schema);
  }
  async down(runner: QueryRunner): Promise<void> {
    await dropEventTables(runner, schema);
  }
}

/** Of a service that is younger than the library's last migration. */
class CreateTables9700000000000 extends CreateTables1700000000000 {
  override readonly name = 'CreateTables9700000000000';
}

/** As the first release created them. */
class FirstRelease1700000000000 implements MigrationInterface {
  readonly name = 'CreateTables1700000000000';
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE depot.outbox (
        id uuid PRIMARY KEY, event_name text NOT NULL, payload jsonb NOT NULL, request_id text, traceparent text,
        occurred_at timestamptz NOT NULL DEFAULT now(), attempts integer NOT NULL DEFAULT 0,
        next_attempt_at timestamptz NOT NULL DEFAULT now(), last_error text
      );
      CREATE TABLE depot.inbox (
        consumer text NOT NULL, event_id uuid NOT NULL, received_at timestamptz NOT NULL DEFAULT now(), taken_at timestamptz,
        tries integer NOT NULL DEFAULT 0, PRIMARY KEY (consumer, event_id)
      );
      CREATE INDEX ON depot.inbox (received_at);
      CREATE TABLE depot.dead_letter (
        id uuid PRIMARY KEY, consumer text NOT NULL, event_id uuid NOT NULL, event_name text NOT NULL, payload jsonb NOT NULL,
        occurred_at timestamptz NOT NULL, request_id text, traceparent text, last_error text NOT NULL, tries integer NOT NULL,
        first_failed_at timestamptz NOT NULL, last_failed_at timestamptz NOT NULL, UNIQUE (consumer, event_id)
      )`);
  }
  async down(): Promise<void> {}
}

describe('the tables of events', () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createDatabase();
  });
  afterEach(() => database.drop());

  async function withTables(
    migrations: (new () => MigrationInterface)[],
    work: (dataSource: DataSource) => Promise<void>,
    entities = eventEntities,
  ): Promise<void> {
    const module = DatabaseModule.forRoot({ schema, url: database.url, entities, migrations });
    const app = await NestFactory.createApplicationContext(module, { abortOnError: false });
    try {
      await work(app.get(DataSource));
    } finally {
      await app.close();
    }
  }

  /**
   * The tables of idempotency keys and call nonces belong to another library, and these migrations do not create them.
   */
  async function drift(dataSource: DataSource): Promise<string[]> {
    return (await migrationDrift(dataSource)).filter((sql) => !/idempotency_key|call_nonce/.test(sql));
  }

  it.each([CreateTables1700000000000, CreateTables9700000000000])(
    'are what their entities say, whether a service is older or younger than the library: %p',
    async (create) => {
      await withTables([create], async (dataSource) => expect(await drift(dataSource)).toEqual([]));
    },
  );

  it('follow the library where a release created them, without a word from the service', async () => {
    await withTables([FirstRelease1700000000000], () => Promise.resolve(), []);
    await withTables([CreateTables1700000000000], async (dataSource) => expect(await drift(dataSource)).toEqual([]));
  });

  it('are those of the first release again, where the library has undone what it added', async () => {
    const shape = (dataSource: DataSource) =>
      dataSource.query<object[]>(
        `SELECT relname AS table, reloptions, attname AS column, atttypid::regtype::text AS type FROM pg_class
         JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
         WHERE relnamespace = 'depot'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migration' ORDER BY 1, attnum`,
      );
    let before: object[] = [];
    await withTables([FirstRelease1700000000000], async (dataSource) => void (before = await shape(dataSource)), []);
    await withTables([CreateTables1700000000000], async (dataSource) => {
      const done = await dataSource.query<object[]>('SELECT FROM migration');
      expect(await shape(dataSource)).not.toEqual(before);
      for (let at = 1; at < done.length; at += 1) await dataSource.undoLastMigration();
      expect(await shape(dataSource)).toEqual(before);
    });
  });

  it('go away without a trace', async () => {
    await withTables([CreateTables1700000000000], async (dataSource) => {
      const done = await dataSource.query<object[]>('SELECT FROM migration');
      for (let at = 0; at < done.length; at += 1) await dataSource.undoLastMigration();
      const tables = await dataSource.query<{ name: string }[]>(
        `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'depot'`,
      );
      expect(tables).toEqual([{ name: 'migration' }]);
    });
  });
});
