import { createDatabaseFrom, type TestDatabase } from '@atoll/testing';
import { Column, Entity, PrimaryColumn, type DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DatabaseOptions } from './data-source.js';
import { createCallNonceTable, dropCallNonceTable } from './call-nonce-table.js';
import { createIdempotencyTable, dropIdempotencyTable } from './idempotency-table.js';
import { openDataSource } from './open-data-source.js';

/** A service as small as can be, for the specs of this library. */
@Entity()
export class Account {
  @PrimaryColumn('text')
  name!: string;

  @Column('integer')
  balanceInCents!: number;
}

export class CreateAccounts1790000000000 implements MigrationInterface {
  readonly name = 'CreateAccounts1790000000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await createIdempotencyTable(queryRunner, 'bank');
    await createCallNonceTable(queryRunner, 'bank');
    await queryRunner.query('CREATE TABLE account (name text PRIMARY KEY, balance_in_cents integer NOT NULL)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE account');
    await dropCallNonceTable(queryRunner, 'bank');
    await dropIdempotencyTable(queryRunner, 'bank');
  }
}

export function bankOptions(url: string, options: Partial<DatabaseOptions> = {}): DatabaseOptions {
  return { schema: 'bank', url, entities: [Account], migrations: [CreateAccounts1790000000000], ...options };
}

export interface Bank {
  database: TestDatabase;
  dataSource: DataSource;
  close(): Promise<void>;
}

const migrated = {
  name: 'bank',
  make: async (url: string) => (await openDataSource(bankOptions(url, { poolSize: 2 }))).destroy(),
};

export async function openBank(options: Partial<DatabaseOptions> = {}): Promise<Bank> {
  const database = await createDatabaseFrom(migrated);
  const dataSource = await openDataSource(bankOptions(database.url, options));
  return {
    database,
    dataSource,
    close: async () => {
      await dataSource.destroy();
      await database.drop();
    },
  };
}
