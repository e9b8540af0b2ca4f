import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Ended runs by when they are to be removed: those whose log is not read wait for a day, and no look reads them
 * meanwhile.
 */
export class RemovableRuns1882000001000 implements MigrationInterface {
  readonly name = 'RemovableRuns1882000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX pod_run_removable ON pod_run (gpuaas_id, (
        coalesce(retry_at AT TIME ZONE 'UTC', ended_at AT TIME ZONE 'UTC' + CASE WHEN is_log_read THEN interval '0' ELSE interval '1 day' END)
      )) WHERE ended_at IS NOT NULL`,
    );
    await dropIndex(runner, 'pod_run_ended');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_run_removable');
    await runner.query('CREATE INDEX pod_run_ended ON pod_run (ended_at) WHERE ended_at IS NOT NULL');
  }
}
