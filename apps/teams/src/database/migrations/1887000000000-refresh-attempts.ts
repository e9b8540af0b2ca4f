import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The attempt of a client that rotated a session. The release before ignores the column when it rotates one. */
export class RefreshAttempts1887000000000 implements MigrationInterface {
  readonly name = 'RefreshAttempts1887000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE session ADD COLUMN attempt_digest bytea');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE session DROP COLUMN attempt_digest');
  }
}
