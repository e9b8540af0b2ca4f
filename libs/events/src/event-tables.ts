import type { MigrationInterface, QueryRunner } from 'typeorm';

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
    )`);
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
      UNIQUE (consumer, event_id)
    )`);
  await createUnsignedCut(queryRunner, `"${schema}"`);
}

async function createUnsignedCut(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.unsigned_event_cut (
      is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
      stream_created text NOT NULL,
      last_sequence bigint NOT NULL
    )`);
}

export async function dropEventTables(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`DROP TABLE IF EXISTS "${schema}".unsigned_event_cut`);
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
    await runner.query(`ALTER TABLE IF EXISTS ${inbox} DROP COLUMN IF EXISTS begun_by, DROP COLUMN IF EXISTS missed_at`);
  }
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

/** The schema that is migrated, ready to be put into SQL; the search path goes on to `public`. */
async function ownSchema(runner: QueryRunner): Promise<string> {
  const rows = (await runner.query('SELECT quote_ident(current_schema()) AS schema')) as { schema: string }[];
  return rows.map(({ schema }) => schema).join('');
}
