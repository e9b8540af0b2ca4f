import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What a claim reads of ends that were given up: team by team, those that need the cluster apart from those that do
 * not.
 */
export class GivenUpTurns1879000000000 implements MigrationInterface {
  readonly name = 'GivenUpTurns1879000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE given_up_end ADD COLUMN IF NOT EXISTS team_id uuid NOT NULL DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff'`,
    );
    await runner.query(
      `UPDATE given_up_end given SET team_id = pod.team_id FROM pod WHERE given.kind = 'pod' AND pod.pod_id = given.id`,
    );
    await runner.query(
      `UPDATE given_up_end given SET team_id = vm.team_id FROM vm WHERE given.kind = 'vm' AND vm.instance_id = given.id`,
    );
    await createIndex(
      runner,
      'CREATE INDEX given_up_end_turn ON given_up_end (gpuaas_id, team_id, (run > 0), try_at, id)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX given_up_end_turn');
    await runner.query('ALTER TABLE given_up_end DROP COLUMN team_id');
  }
}
