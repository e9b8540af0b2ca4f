import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DatabaseModule, migrationDrift } from '@atoll/database';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { createEventTables, dropEventTables, eventEntities } from './event-tables.js';

class CreateTables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'depot');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropEventTables(runner, 'depot');
  }
}

describe('the tables of events', () => {
  let database: TestDatabase;
  let app: INestApplicationContext;

  beforeAll(async () => {
    database = await createDatabase();
    const module = DatabaseModule.forRoot({
      schema: 'depot',
      url: database.url,
      entities: eventEntities,
      migrations: [CreateTables1700000000000],
    });
    app = await NestFactory.createApplicationContext(module, { abortOnError: false });
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
  });

  it('are what their entities say', async () => {
    const drift = await migrationDrift(app.get(DataSource));
    // The tables of idempotency keys and call nonces belong to another library, and this migration does not create them.
    expect(drift.filter((sql) => !/idempotency_key|call_nonce/.test(sql))).toEqual([]);
  });

  it('go away without a trace', async () => {
    const dataSource = app.get(DataSource);
    await dataSource.undoLastMigration();
    const tables = await dataSource.query<{ name: string }[]>(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'depot'`);
    expect(tables).toEqual([{ name: 'migration' }]);
  });
});
