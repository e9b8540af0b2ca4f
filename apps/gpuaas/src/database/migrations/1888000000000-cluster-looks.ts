import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Looks at clusters are numbered, so that a late one does not undo what a later one has found. */
export class ClusterLooks1888000000000 implements MigrationInterface {
  readonly name = 'ClusterLooks1888000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE cluster ADD COLUMN looks bigint NOT NULL DEFAULT 0, ADD COLUMN latest_look bigint NOT NULL DEFAULT 0',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE cluster DROP COLUMN looks, DROP COLUMN latest_look');
  }
}
