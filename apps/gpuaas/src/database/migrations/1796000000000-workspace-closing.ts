import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WorkspaceClosing1796000000000 implements MigrationInterface {
  readonly name = 'WorkspaceClosing1796000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE workspace_closing (workspace_id uuid PRIMARY KEY, until timestamptz(3) NOT NULL)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE workspace_closing');
  }
}
