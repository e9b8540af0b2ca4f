import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * An exposed service has the team of its pod, so that claims look no pods up. Not `team_id`: statements of the release
 * before read that of the pod by this name. Rows that a worker or a call has locked, and those that the release before
 * makes, have none, and their pod is looked up.
 */
export class OwnersOfExposures1894000000000 implements MigrationInterface {
  readonly name = 'OwnersOfExposures1894000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE exposure ADD COLUMN IF NOT EXISTS owner_id uuid');
    await runner.query(
      `UPDATE exposure SET owner_id = pod.team_id FROM pod WHERE pod.pod_id = exposure.pod_id AND service_id = ANY (ARRAY(
         SELECT service_id FROM exposure WHERE state <> 'deleted' AND owner_id IS NULL FOR NO KEY UPDATE SKIP LOCKED
       ))`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE exposure DROP COLUMN owner_id');
  }
}
