import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A run that its cluster does not remove is tried again later, and no other run waits for it. */
export class RetriedRuns1876000000000 implements MigrationInterface {
  readonly name = 'RetriedRuns1876000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod_run ADD retry_at timestamptz(3)');
    await runner.query('DROP INDEX pod_run_ended');
    await runner.query('CREATE INDEX pod_run_ended ON pod_run (gpuaas_id, (coalesce(retry_at, ended_at))) WHERE ended_at IS NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_run_ended');
    await runner.query('CREATE INDEX pod_run_ended ON pod_run (ended_at) WHERE ended_at IS NOT NULL');
    await runner.query('ALTER TABLE pod_run DROP COLUMN retry_at');
  }
}
