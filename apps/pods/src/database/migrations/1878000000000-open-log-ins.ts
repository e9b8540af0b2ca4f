import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When the replica that holds an open connection last said so. */
export class OpenLogIns1878000000000 implements MigrationInterface {
  readonly name = 'OpenLogIns1878000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE ssh_log_in ADD COLUMN IF NOT EXISTS seen_at timestamp(3) with time zone');
    await createIndex(runner, 'CREATE INDEX ssh_log_in_open ON ssh_log_in (began_at) WHERE ended_at IS NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX ssh_log_in_open');
    await runner.query('ALTER TABLE ssh_log_in DROP COLUMN seen_at');
  }
}
