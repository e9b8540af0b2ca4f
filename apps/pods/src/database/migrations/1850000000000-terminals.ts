import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A log-in to a terminal has no key. */
export class Terminals1850000000000 implements MigrationInterface {
  readonly name = 'Terminals1850000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE ssh_log_in ALTER COLUMN fingerprint DROP NOT NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DELETE FROM ssh_log_in WHERE fingerprint IS NULL');
    await runner.query('ALTER TABLE ssh_log_in ALTER COLUMN fingerprint SET NOT NULL');
  }
}
