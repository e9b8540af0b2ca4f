import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What readers of logs ask for each second: the runs that none of them has begun to read, and not all that are there.
 */
export class ClaimedRuns1881000000000 implements MigrationInterface {
  readonly name = 'ClaimedRuns1881000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod_run ADD COLUMN IF NOT EXISTS is_claimed boolean NOT NULL DEFAULT false');
    await createIndex(
      runner,
      'CREATE INDEX pod_run_unclaimed ON pod_run (pod_id) WHERE NOT is_claimed AND NOT is_log_read',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_run_unclaimed');
    await runner.query('ALTER TABLE pod_run DROP COLUMN is_claimed');
  }
}
