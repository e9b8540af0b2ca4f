import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WorkspaceDeletion1797000000000 implements MigrationInterface {
  readonly name = 'WorkspaceDeletion1797000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE workspace ADD "deletion_attempt_id" uuid, ADD "deletion_deadline" TIMESTAMP(3) WITH TIME ZONE`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE workspace DROP COLUMN "deletion_attempt_id", DROP COLUMN "deletion_deadline"`);
  }
}
