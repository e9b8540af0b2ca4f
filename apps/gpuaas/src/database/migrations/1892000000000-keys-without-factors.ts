import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Which members joined a team that required a second factor, and which SSH keys were added without one, by their places
 * among those of their user: gpuaas is upgraded before pods, which tells them.
 */
export class KeysWithoutFactors1892000000000 implements MigrationInterface {
  readonly name = 'KeysWithoutFactors1892000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE member_role ADD COLUMN IF NOT EXISTS required_factor boolean NOT NULL DEFAULT false',
    );
    await runner.query(
      `ALTER TABLE user_ssh_keys ADD COLUMN IF NOT EXISTS without_factor integer[] NOT NULL DEFAULT '{}'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE user_ssh_keys DROP COLUMN without_factor');
    await runner.query('ALTER TABLE member_role DROP COLUMN required_factor');
  }
}
