import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which SSH keys were added without a second factor. Those of earlier releases count as added with one. */
export class SshKeysWithoutFactors1892000000000 implements MigrationInterface {
  readonly name = 'SshKeysWithoutFactors1892000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE ssh_key ADD lacks_second_factor boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE ssh_key DROP lacks_second_factor');
  }
}
