import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A cluster that misses one check is asked again before it is said to be unreachable. */
export class MissedChecks1872000000000 implements MigrationInterface {
  readonly name = 'MissedChecks1872000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE cluster ADD COLUMN has_missed boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE cluster DROP COLUMN has_missed');
  }
}
