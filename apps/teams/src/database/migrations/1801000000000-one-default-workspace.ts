import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Each update of a team names its default workspace, so it is found by an index. */
export class OneDefaultWorkspace1801000000000 implements MigrationInterface {
  readonly name = 'OneDefaultWorkspace1801000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE UNIQUE INDEX ON workspace (team_id) WHERE is_default');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX workspace_team_id_idx');
  }
}
