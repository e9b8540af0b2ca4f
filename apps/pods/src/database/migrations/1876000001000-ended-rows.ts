import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Deleted pods stay, and listings with `include_ended` read them; deleted exposed services, which nothing shows, go
 * after a while.
 */
export class EndedRows1876000001000 implements MigrationInterface {
  readonly name = 'EndedRows1876000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, 'CREATE INDEX pod_of_team ON pod (team_id, created_at, pod_id)');
    await createIndex(runner, `CREATE INDEX exposure_deleted ON exposure (entered_at) WHERE state = 'deleted'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_of_team, exposure_deleted');
  }
}
