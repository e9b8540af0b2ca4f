import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whose instance failed last on a bare-metal node. */
export class FailedTeam1886000000000 implements MigrationInterface {
  readonly name = 'FailedTeam1886000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE baremetal_node ADD COLUMN IF NOT EXISTS failed_team_id uuid');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE baremetal_node DROP failed_team_id');
  }
}
