import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const all = '(team_id, created_at, pod_id)';

/** Rows of deleted pods stay, and no listing reads them. */
export class KeptPods1875000001000 implements MigrationInterface {
  readonly name = 'KeptPods1875000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, `CREATE INDEX pod_kept_of_team ON pod ${all} WHERE state <> 'deleted'`);
    await dropIndex(runner, 'pod_team_id_created_at_pod_id_idx');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX ON pod ${all}`);
    await runner.query('DROP INDEX pod_kept_of_team');
  }
}
