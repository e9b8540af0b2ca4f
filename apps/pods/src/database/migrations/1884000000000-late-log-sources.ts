import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How far readers of logs are, so that who follows several pods passes no line that is stored late. */
export class LateLogSources1884000000000 implements MigrationInterface {
  readonly name = 'LateLogSources1884000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE log_reader ADD COLUMN IF NOT EXISTS started_at timestamptz(3), ADD COLUMN IF NOT EXISTS read_to timestamptz(3)',
    );
    await runner.query(
      'ALTER TABLE log_source ADD COLUMN IF NOT EXISTS read_to timestamptz(3), ADD COLUMN IF NOT EXISTS holds_until timestamptz(3)',
    );
    await createIndex(
      runner,
      'CREATE INDEX log_source_late ON log_source (scope_no, holds_until) WHERE holds_until IS NOT NULL',
    );
    await createIndex(
      runner,
      'CREATE INDEX log_source_of_reader ON log_source (reader_id, scope_no) WHERE reader_id IS NOT NULL',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX log_source_late, log_source_of_reader');
    await runner.query('ALTER TABLE log_source DROP COLUMN read_to, DROP COLUMN holds_until');
    await runner.query('ALTER TABLE log_reader DROP COLUMN started_at, DROP COLUMN read_to');
  }
}
