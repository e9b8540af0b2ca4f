import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LinksByOwners1881000000000 implements MigrationInterface {
  readonly name = 'LinksByOwners1881000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE one_time_link ADD COLUMN IF NOT EXISTS issued_by_owner boolean NOT NULL DEFAULT false',
    );
    await runner.query('ALTER TABLE "user" ADD COLUMN IF NOT EXISTS confined_by_owner boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE "user" DROP COLUMN confined_by_owner');
    await runner.query('ALTER TABLE one_time_link DROP COLUMN issued_by_owner');
  }
}
