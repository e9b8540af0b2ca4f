import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LinksThatRemoveFactors1873000000000 implements MigrationInterface {
  readonly name = 'LinksThatRemoveFactors1873000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE one_time_link ADD removes_factors boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE one_time_link DROP COLUMN removes_factors');
  }
}
