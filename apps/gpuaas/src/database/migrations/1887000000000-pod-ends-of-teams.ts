import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When pods of a team were last ended, and since when the service has heard of ends, for all of its replicas. */
export class PodEndsOfTeams1887000000000 implements MigrationInterface {
  readonly name = 'PodEndsOfTeams1887000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE pod_end ADD COLUMN IF NOT EXISTS team_id uuid, ADD COLUMN IF NOT EXISTS ended_at timestamptz(3)',
    );
    await createIndex(runner, 'CREATE INDEX pod_end_of_team ON pod_end (team_id, ended_at) WHERE team_id IS NOT NULL');
    await runner.query(
      `CREATE TABLE IF NOT EXISTS service_start (
        is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
        started_at timestamptz(3) NOT NULL
      )`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE service_start');
    await runner.query('DROP INDEX pod_end_of_team');
    await runner.query('ALTER TABLE pod_end DROP COLUMN team_id, DROP COLUMN ended_at');
  }
}
