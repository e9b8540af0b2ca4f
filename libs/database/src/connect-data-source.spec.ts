import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { connectDataSource, openDataSource } from './open-data-source.js';

class First1700000000000 implements MigrationInterface {
  readonly name: string = 'First1700000000000';
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE quay.boat (id integer PRIMARY KEY)');
  }
  async down(): Promise<void> {}
}
class Second1800000000000 implements MigrationInterface {
  readonly name = 'Second1800000000000';
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE quay.boat ADD COLUMN name text');
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase();
});
afterEach(() => database.drop());

const options = (...migrations: (new () => MigrationInterface)[]) => ({
  schema: 'quay',
  url: database.url,
  entities: [],
  migrations,
});

/** A release of the service runs once. */
async function release(...migrations: (new () => MigrationInterface)[]): Promise<void> {
  const dataSource = await openDataSource(options(...migrations));
  await dataSource.destroy();
}

async function tables(): Promise<string[]> {
  const dataSource = await openDataSource({ ...options(), schema: 'observer' });
  const rows = await dataSource.query<{ name: string }[]>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_schema = 'quay' AND table_name = 'boat' ORDER BY 1`,
  );
  await dataSource.destroy();
  return rows.map(({ name }) => name);
}

describe('connectDataSource', () => {
  it('gives the schema of the service as it is', async () => {
    await release(First1700000000000);
    const dataSource = await connectDataSource(options(First1700000000000));
    expect(await dataSource.query('SELECT * FROM boat')).toEqual([]);
    await dataSource.destroy();
  });

  it('creates nothing where the service has never run, and says so', async () => {
    await expect(connectDataSource(options(First1700000000000))).rejects.toThrow(
      'The database has no schema quay yet: start the service quay once.',
    );
    expect(await tables()).toEqual([]);
  });

  it('migrates nothing where the schema is older than the program, and says so', async () => {
    await release(First1700000000000);
    await expect(connectDataSource(options(First1700000000000, Second1800000000000))).rejects.toThrow(
      'The schema quay is older than this program: Second1800000000000 has not run. Start the service quay of this release first.',
    );
    expect(await tables()).toEqual(['boat.id']);
  });

  it('says where the schema is newer than the program', async () => {
    await release(First1700000000000, Second1800000000000);
    await expect(connectDataSource(options(First1700000000000))).rejects.toThrow(
      'The schema quay is newer than this program, which has no migration Second1800000000000. Run the command from the release that the services run.',
    );
  });
});
