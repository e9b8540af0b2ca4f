import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AcceptedMemberships1874000000000 implements MigrationInterface {
  readonly name = 'AcceptedMemberships1874000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE membership ADD accepted_at timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE membership DROP COLUMN accepted_at');
  }
}
