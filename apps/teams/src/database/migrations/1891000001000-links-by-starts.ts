import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which links the start of a process made. */
export class LinksByStarts1891000001000 implements MigrationInterface {
  readonly name = 'LinksByStarts1891000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE one_time_link ADD COLUMN IF NOT EXISTS is_by_start boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE one_time_link DROP COLUMN is_by_start');
  }
}
