import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A key counts for whoever was shown it. Of keys that were issued before, that is not known. */
export class HoldersOfKeys1894000000000 implements MigrationInterface {
  readonly name = 'HoldersOfKeys1894000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_key ADD COLUMN shown_to uuid');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_key DROP COLUMN shown_to');
  }
}
