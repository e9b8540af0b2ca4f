import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ForcedDeletion1803000000000 implements MigrationInterface {
  readonly name = 'ForcedDeletion1803000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE team ADD forced_deletion_began_at timestamptz(3), ADD forced_deletion_due_at timestamptz(3)`,
    );
    await runner.query('CREATE INDEX ON team (forced_deletion_due_at) WHERE forced_deletion_due_at IS NOT NULL');
    await runner.query(`ALTER TABLE deletion_answer ADD remaining json NOT NULL DEFAULT '[]'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE team DROP COLUMN forced_deletion_began_at, DROP COLUMN forced_deletion_due_at');
    await runner.query('ALTER TABLE deletion_answer DROP COLUMN remaining');
  }
}
