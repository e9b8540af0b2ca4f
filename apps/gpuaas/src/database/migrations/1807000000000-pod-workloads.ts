import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PodWorkloads1807000000000 implements MigrationInterface {
  readonly name = 'PodWorkloads1807000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE workload ADD "pod_id" uuid, ADD "pod_start" integer');
    await runner.query('CREATE UNIQUE INDEX workload_pod ON workload (pod_id, pod_start) WHERE pod_id IS NOT NULL');
    await runner.query('CREATE TABLE pod_end (pod_id uuid PRIMARY KEY, ended_start integer NOT NULL)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE pod_end');
    await runner.query('ALTER TABLE workload DROP COLUMN "pod_id", DROP COLUMN "pod_start"');
  }
}
