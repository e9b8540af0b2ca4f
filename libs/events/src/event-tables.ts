import type { QueryRunner } from 'typeorm';
import { DeadLetter } from './dead-letter.entity.js';
import { InboxRow } from './inbox.entity.js';
import { OutboxRow } from './outbox.entity.js';

/** What this library adds to the entities of each service. */
export const eventEntities = [OutboxRow, InboxRow, DeadLetter];

/** For a service's first migration. */
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
}

export async function dropEventTables(queryRunner: QueryRunner, schema: string): Promise<void> {
  await queryRunner.query(`DROP TABLE "${schema}".dead_letter, "${schema}".inbox, "${schema}".outbox`);
}
