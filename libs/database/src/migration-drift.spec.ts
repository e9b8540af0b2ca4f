import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import {
  Column,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  Unique,
  type DataSource,
  type MigrationInterface,
  type QueryRunner,
  type Relation,
} from 'typeorm';
import { createCallNonceTable } from './call-nonce-table.js';
import { createIdempotencyTable } from './idempotency-table.js';
import { migrationDrift } from './migration-drift.js';
import { openDataSource } from './open-data-source.js';

@Entity()
class Harbour {
  @PrimaryColumn('uuid')
  id!: string;
  @Column('text', { unique: true })
  fullName!: string;
  // pg warns where the types of these are asked for at once.
  @Column('text', { array: true })
  quays!: string[];
  @Column('text', { array: true })
  lights!: string[];
  @Column('integer', { array: true })
  depths!: number[];
}

@Entity()
@Unique(['harbourId', 'berthNumber'])
@Index(['createdAt', 'id'])
class BoatBerth {
  @PrimaryColumn('uuid')
  id!: string;
  @Column('uuid')
  harbourId!: string;
  @ManyToOne(() => Harbour)
  @JoinColumn()
  harbour!: Relation<Harbour>;
  @Column('integer')
  berthNumber!: number;
  @Column('timestamp with time zone', { precision: 3, default: () => 'now()' })
  createdAt!: Date;
}

const plainSql = [
  `CREATE TABLE harbour (id uuid PRIMARY KEY, full_name text NOT NULL UNIQUE,
     quays text[] NOT NULL, lights text[] NOT NULL, depths integer[] NOT NULL)`,
  `CREATE TABLE boat_berth (
    id uuid PRIMARY KEY,
    harbour_id uuid NOT NULL REFERENCES harbour,
    berth_number integer NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    UNIQUE (harbour_id, berth_number)
  )`,
  'CREATE INDEX ON boat_berth (created_at, id)',
];

class Harbours1790000000000 implements MigrationInterface {
  readonly name = 'Harbours1790000000000';
  async up(queryRunner: QueryRunner): Promise<void> {
    await createIdempotencyTable(queryRunner, 'harbours');
    await createCallNonceTable(queryRunner, 'harbours');
    for (const statement of plainSql) await queryRunner.query(statement);
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
let dataSource: DataSource;

beforeEach(async () => {
  database = await createDatabase();
  dataSource = await openDataSource({
    schema: 'harbours',
    url: database.url,
    entities: [Harbour, BoatBerth],
    migrations: [Harbours1790000000000],
  });
});
afterEach(async () => {
  await dataSource.destroy();
  await database.drop();
});

describe('migrationDrift', () => {
  it('is empty for a migration in plain SQL that names nothing', async () => {
    expect(await migrationDrift(dataSource)).toEqual([]);
  });

  it.each([
    ['a column that is missing', 'ALTER TABLE harbour DROP COLUMN full_name', /ADD "full_name"/],
    ['a column of another type', 'ALTER TABLE boat_berth ALTER COLUMN berth_number TYPE bigint', /"berth_number"/],
    [
      'a column that may be null',
      'ALTER TABLE harbour ALTER COLUMN full_name DROP NOT NULL',
      /"full_name" SET NOT NULL/,
    ],
    ['a column too many', 'ALTER TABLE harbour ADD COLUMN depth int', /DROP COLUMN "depth"/],
    ['a table that is missing', 'DROP TABLE boat_berth', /CREATE TABLE "boat_berth"/],
    [
      'an index that is missing',
      'DROP INDEX boat_berth_created_at_id_idx',
      /CREATE INDEX "boat_berth_created_at_id_idx"/,
    ],
    [
      'a foreign key that is missing',
      'ALTER TABLE boat_berth DROP CONSTRAINT boat_berth_harbour_id_fkey',
      /FOREIGN KEY \("harbour_id"\)/,
    ],
    [
      'a unique constraint that is missing',
      'ALTER TABLE harbour DROP CONSTRAINT harbour_full_name_key',
      /UNIQUE \("full_name"\)/,
    ],
  ])('names %s', async (_what, change, sql) => {
    await dataSource.query(change);
    expect((await migrationDrift(dataSource)).join('\n')).toMatch(sql);
  });
});
