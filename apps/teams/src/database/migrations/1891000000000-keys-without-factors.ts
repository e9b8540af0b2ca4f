import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which keys were made without a second factor, and since when teams require one. */
export class KeysWithoutFactors1891000000000 implements MigrationInterface {
  readonly name = 'KeysWithoutFactors1891000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE api_key ADD COLUMN IF NOT EXISTS lacks_second_factor boolean NOT NULL DEFAULT false',
    );
    await runner.query('ALTER TABLE team ADD COLUMN IF NOT EXISTS second_factor_since timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE team DROP COLUMN second_factor_since');
    await runner.query('ALTER TABLE api_key DROP COLUMN lacks_second_factor');
  }
}
