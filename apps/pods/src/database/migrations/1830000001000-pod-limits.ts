import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PodLimits1830000001000 implements MigrationInterface {
  readonly name = 'PodLimits1830000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE pod_limit (scope text PRIMARY KEY, limits jsonb NOT NULL)');
    await runner.query('ALTER TABLE pod ADD is_stop_warned boolean NOT NULL DEFAULT false');
    await runner.query('ALTER TABLE pod ADD idleness jsonb');
    await runner.query(`CREATE INDEX pod_idle_stop ON pod (pod_id) WHERE state = 'running' AND idle_stop IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_idle_stop');
    await runner.query('ALTER TABLE pod DROP COLUMN idleness, DROP COLUMN is_stop_warned');
    await runner.query('DROP TABLE pod_limit');
  }
}
