import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A run that its cluster does not remove is tried again later, and no other run waits for it.
 * `RemovableRuns1882000001000` has its index.
 */
export class RetriedRuns1876000000000 implements MigrationInterface {
  readonly name = 'RetriedRuns1876000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod_run ADD retry_at timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod_run DROP COLUMN retry_at');
  }
}
