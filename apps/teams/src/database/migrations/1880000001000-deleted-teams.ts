import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deleted teams in the order in which their members are removed. */
export class DeletedTeams1880000001000 implements MigrationInterface {
  readonly name = 'DeletedTeams1880000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      'CREATE INDEX team_deleted_at_id_idx ON team (deleted_at, id) WHERE deleted_at IS NOT NULL',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX team_deleted_at_id_idx');
  }
}
