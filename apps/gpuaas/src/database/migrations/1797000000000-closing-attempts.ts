import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['team_closing', 'workspace_closing'];

export class ClosingAttempts1797000000000 implements MigrationInterface {
  readonly name = 'ClosingAttempts1797000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} ADD "attempt_id" uuid`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} DROP COLUMN "attempt_id"`);
  }
}
