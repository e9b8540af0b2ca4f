import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const ofLaterReleases = ['unsigned_event_cut', 'event_progress', 'event_gap', 'outbox_published', 'event_head'];

/** The relay updates each row once, in its page if that has room: then no index is touched. */
const roomToNumber = 'fillfactor = 50';

/** For the first migration of a service: the tables as this version of the library needs them. */
export async function createEventTables(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    CREATE TABLE "${schema}".outbox (
      id uuid PRIMARY KEY,
      event_name text NOT NULL,
      payload jsonb NOT NULL,
      request_id text,
      traceparent text,
      occurred_at timestamptz NOT NULL DEFAULT now(),
      attempts integer NOT NULL DEFAULT 0,
      next_attempt_at timestamptz NOT NULL DEFAULT now(),
      last_error text
    ) WITH (${roomToNumber})`);
  await queryRunner.query(`
    CREATE TABLE "${schema}".inbox (
      consumer text NOT NULL,
      event_id uuid NOT NULL,
      received_at timestamptz NOT NULL DEFAULT now(),
      taken_at timestamptz,
      tries integer NOT NULL DEFAULT 0,
      begun_by uuid,
      missed_at timestamptz,
      PRIMARY KEY (consumer, event_id)
    )`);
  await queryRunner.query(`CREATE INDEX ON "${schema}".inbox (received_at)`);
  await queryRunner.query(`
    CREATE TABLE "${schema}".dead_letter (
      id uuid PRIMARY KEY,
      consumer text NOT NULL,
      event_id uuid NOT NULL,
      event_name text NOT NULL,
      payload jsonb NOT NULL,
      occurred_at timestamptz NOT NULL,
      request_id text,
      traceparent text,
      last_error text NOT NULL,
      tries integer NOT NULL,
      first_failed_at timestamptz NOT NULL,
      last_failed_at timestamptz NOT NULL,
      retry_requested_at timestamptz,
      UNIQUE (consumer, event_id)
    )`);
  await createUnsignedCut(queryRunner, `"${schema}"`);
  await addPositions(queryRunner, `"${schema}"`);
  await createGaps(queryRunner, `"${schema}"`);
  await addTimeouts(queryRunner, `"${schema}"`);
  await addFetches(queryRunner, `"${schema}"`);
  await addLetterIndexes(queryRunner, `"${schema}"`);
}

async function createUnsignedCut(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.unsigned_event_cut (
      is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
      stream_created text NOT NULL,
      last_sequence bigint NOT NULL
    )`);
}

/** Numbers in the outbox, what was published, and how far consumers are. */
async function addPositions(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    ALTER TABLE ${schema}.outbox
      ADD COLUMN IF NOT EXISTS seq bigserial,
      ADD COLUMN IF NOT EXISTS position bigint,
      ADD COLUMN IF NOT EXISTS previous bigint`);
  await queryRunner.query(`CREATE INDEX IF NOT EXISTS outbox_seq_idx ON ${schema}.outbox (seq)`);
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.event_head (
      event_name text PRIMARY KEY,
      position bigint NOT NULL
    )`);
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.outbox_published (
      position bigint NOT NULL,
      previous bigint NOT NULL,
      id uuid NOT NULL,
      event_name text NOT NULL,
      payload jsonb NOT NULL,
      request_id text,
      traceparent text,
      occurred_at timestamptz NOT NULL,
      published_at timestamptz NOT NULL DEFAULT now()
    ) PARTITION BY RANGE (published_at)`);
  await queryRunner.query(
    `CREATE INDEX IF NOT EXISTS outbox_published_position_idx ON ${schema}.outbox_published (event_name, position)`,
  );
  await queryRunner.query(`
    ALTER TABLE ${schema}.inbox
      ADD COLUMN IF NOT EXISTS publisher text,
      ADD COLUMN IF NOT EXISTS event_name text,
      ADD COLUMN IF NOT EXISTS position bigint,
      ADD COLUMN IF NOT EXISTS previous bigint`);
  await createIndex(
    queryRunner,
    `CREATE INDEX inbox_consumer_publisher_event_name_position_idx ON ${schema}.inbox (consumer, publisher, event_name, position) WHERE position IS NOT NULL`,
  );
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.event_progress (
      consumer text NOT NULL,
      publisher text NOT NULL,
      event_name text NOT NULL,
      position bigint NOT NULL,
      lost integer NOT NULL DEFAULT 0,
      PRIMARY KEY (consumer, publisher, event_name)
    )`);
}

/** What was given up as lost, and may come all the same. */
async function createGaps(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.event_gap (
      consumer text NOT NULL,
      publisher text NOT NULL,
      event_name text NOT NULL,
      after bigint NOT NULL,
      up_to bigint NOT NULL,
      PRIMARY KEY (consumer, publisher, event_name, after)
    )`);
}

/** When an event that waits last exceeded the statement timeout. */
async function addTimeouts(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`ALTER TABLE ${schema}.inbox ADD COLUMN IF NOT EXISTS timed_out_at timestamptz`);
  await createIndex(
    queryRunner,
    `CREATE INDEX inbox_timed_out ON ${schema}.inbox (consumer, timed_out_at) WHERE timed_out_at IS NOT NULL AND taken_at IS NULL`,
  );
}

/** By the index, what was fetched and has had no effect is found among any number of events. */
async function addFetches(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`ALTER TABLE ${schema}.inbox ADD COLUMN IF NOT EXISTS fetch_at timestamptz`);
  await createIndex(
    queryRunner,
    `CREATE INDEX inbox_fetch ON ${schema}.inbox (consumer, publisher, event_name, fetch_at) WHERE fetch_at IS NOT NULL AND taken_at IS NULL`,
  );
}

/**
 * By which the few dead letters that are to be tried again, and those that failed last, are found among any number of
 * them.
 */
async function addLetterIndexes(queryRunner: QueryRunner, schema: string): Promise<void> {
  await createIndex(
    queryRunner,
    `CREATE INDEX dead_letter_retry ON ${schema}.dead_letter (retry_requested_at) WHERE retry_requested_at IS NOT NULL`,
  );
  await createIndex(queryRunner, `CREATE INDEX dead_letter_latest ON ${schema}.dead_letter (last_failed_at, id)`);
}

export async function dropEventTables(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`DROP TABLE IF EXISTS ${ofLaterReleases.map((table) => `"${schema}".${table}`).join(', ')}`);
  await queryRunner.query(`DROP TABLE "${schema}".dead_letter, "${schema}".inbox, "${schema}".outbox`);
}

/** Tables of the first release: the columns by which tries are counted. */
export class InboxProcesses1806000000000 implements MigrationInterface {
  readonly name = 'InboxProcesses1806000000000';

  async up(runner: QueryRunner): Promise<void> {
    const inbox = `${await ownSchema(runner)}.inbox`;
    await runner.query(`ALTER TABLE IF EXISTS ${inbox} ADD COLUMN IF NOT EXISTS begun_by uuid`);
    await runner.query(`ALTER TABLE IF EXISTS ${inbox} ADD COLUMN IF NOT EXISTS missed_at timestamptz`);
  }

  async down(runner: QueryRunner): Promise<void> {
    const inbox = `${await ownSchema(runner)}.inbox`;
    await runner.query(
      `ALTER TABLE IF EXISTS ${inbox} DROP COLUMN IF EXISTS begun_by, DROP COLUMN IF EXISTS missed_at`,
    );
  }
}

/** Numbers for events of the first release, which begin where this migration runs. */
export class EventPositions1808000000000 implements MigrationInterface {
  readonly name = 'EventPositions1808000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    if (await hasTable(runner, `${schema}.inbox`)) await addPositions(runner, schema);
  }

  async down(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    await runner.query(
      `DROP TABLE IF EXISTS ${schema}.event_progress, ${schema}.outbox_published, ${schema}.event_head`,
    );
    await runner.query(
      `ALTER TABLE IF EXISTS ${schema}.inbox ${dropColumns('publisher', 'event_name', 'position', 'previous')}`,
    );
    await runner.query(`ALTER TABLE IF EXISTS ${schema}.outbox ${dropColumns('seq', 'position', 'previous')}`);
  }
}

/** Where an operator asks the running service to try a dead letter once more. */
export class DeadLetterRetries1809000000000 implements MigrationInterface {
  readonly name = 'DeadLetterRetries1809000000000';

  async up(runner: QueryRunner): Promise<void> {
    const letters = `${await ownSchema(runner)}.dead_letter`;
    await runner.query(`ALTER TABLE IF EXISTS ${letters} ADD COLUMN IF NOT EXISTS retry_requested_at timestamptz`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE IF EXISTS ${await ownSchema(runner)}.dead_letter ${dropColumns('retry_requested_at')}`,
    );
  }
}

/** Dead letters may pile up, and are looked at each second. */
export class DeadLetterIndexes1813000000000 implements MigrationInterface {
  readonly name = 'DeadLetterIndexes1813000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    if (await hasTable(runner, `${schema}.dead_letter`)) await addLetterIndexes(runner, schema);
  }

  async down(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    await runner.query(`DROP INDEX IF EXISTS ${schema}.dead_letter_retry, ${schema}.dead_letter_latest`);
  }
}

/** Room in the pages of the outbox for the numbers that the relay writes. */
export class OutboxRoom1810000000000 implements MigrationInterface {
  readonly name = 'OutboxRoom1810000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE IF EXISTS ${await ownSchema(runner)}.outbox SET (${roomToNumber})`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE IF EXISTS ${await ownSchema(runner)}.outbox RESET (fillfactor)`);
  }
}

/** Where a consumer remembers what it has given up. */
export class EventGaps1811000000000 implements MigrationInterface {
  readonly name = 'EventGaps1811000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createGaps(runner, await ownSchema(runner));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE IF EXISTS ${await ownSchema(runner)}.event_gap`);
  }
}

/** Tells an event that takes too long to handle from a database that is slow. */
export class InboxTimeouts1812000000000 implements MigrationInterface {
  readonly name = 'InboxTimeouts1812000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    if (await hasTable(runner, `${schema}.inbox`)) await addTimeouts(runner, schema);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE IF EXISTS ${await ownSchema(runner)}.inbox ${dropColumns('timed_out_at')}`);
  }
}

/** When an event that was fetched is fetched again. */
export class InboxFetches1814000000000 implements MigrationInterface {
  readonly name = 'InboxFetches1814000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    const schema = await ownSchema(runner);
    if (await hasTable(runner, `${schema}.inbox`)) await addFetches(runner, schema);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE IF EXISTS ${await ownSchema(runner)}.inbox ${dropColumns('fetch_at')}`);
  }
}

function dropColumns(...columns: string[]): string {
  return columns.map((column) => `DROP COLUMN IF EXISTS ${column}`).join(', ');
}

/** Where events began to be signed. */
export class UnsignedEventCut1807000000000 implements MigrationInterface {
  readonly name = 'UnsignedEventCut1807000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createUnsignedCut(runner, await ownSchema(runner));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE IF EXISTS ${await ownSchema(runner)}.unsigned_event_cut`);
  }
}

async function hasTable(runner: QueryRunner, table: string): Promise<boolean> {
  const rows = (await runner.query('SELECT to_regclass($1) IS NOT NULL AS "exists"', [table])) as { exists: boolean }[];
  return rows[0]?.exists === true;
}

/** The schema that is migrated, ready to be put into SQL; the search path goes on to `public`. */
async function ownSchema(runner: QueryRunner): Promise<string> {
  const rows = (await runner.query('SELECT quote_ident(current_schema()) AS schema')) as { schema: string }[];
  return rows.map(({ schema }) => schema).join('');
}
