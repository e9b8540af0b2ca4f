import type { MigrationInterface, QueryRunner } from 'typeorm';

export class SuccessionAndDeletion1796000000000 implements MigrationInterface {
  readonly name = 'SuccessionAndDeletion1796000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE api_key ADD "replaced_at" TIMESTAMP(3) WITH TIME ZONE, ADD "bound_until" TIMESTAMP(3) WITH TIME ZONE`);
    await runner.query(`ALTER TABLE workspace ADD "deletion_attempt_id" uuid`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE workspace DROP COLUMN "deletion_attempt_id"`);
    await runner.query(`ALTER TABLE api_key DROP COLUMN "replaced_at", DROP COLUMN "bound_until"`);
  }
}
