import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Which keys were made without a second factor, and who joined a team that required one. Of those who have joined
 * before, what the team requires now counts.
 */
export class KeysWithoutFactors1891000000000 implements MigrationInterface {
  readonly name = 'KeysWithoutFactors1891000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE api_key ADD COLUMN IF NOT EXISTS lacks_second_factor boolean NOT NULL DEFAULT false',
    );
    await runner.query('ALTER TABLE membership ADD COLUMN IF NOT EXISTS required_factor_at_join boolean');
    await runner.query(
      `UPDATE membership m SET required_factor_at_join = t.require_second_factor FROM team t
       WHERE t.id = m.team_id AND m.status = 'active' AND m.required_factor_at_join IS NULL`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE membership DROP COLUMN required_factor_at_join');
    await runner.query('ALTER TABLE api_key DROP COLUMN lacks_second_factor');
  }
}
