import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Counts the SSH keys that a user adds within an hour. */
export class AddedKeys1892000003000 implements MigrationInterface {
  readonly name = 'AddedKeys1892000003000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE ssh_key_owner ADD added integer NOT NULL DEFAULT 0, ADD added_since timestamptz(3) NOT NULL DEFAULT now()',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE ssh_key_owner DROP added, DROP added_since');
  }
}
