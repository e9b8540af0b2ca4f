import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeySuccession1796000000000 implements MigrationInterface {
  readonly name = 'KeySuccession1796000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE api_key ADD "replaced_at" TIMESTAMP(3) WITH TIME ZONE, ADD "bound_until" TIMESTAMP(3) WITH TIME ZONE`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE api_key DROP COLUMN "replaced_at", DROP COLUMN "bound_until"`);
  }
}
