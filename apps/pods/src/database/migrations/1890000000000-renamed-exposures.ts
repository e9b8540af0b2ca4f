import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A new name is a change of an exposed service too, which its machine knows nothing of. */
export class RenamedExposures1890000000000 implements MigrationInterface {
  readonly name = 'RenamedExposures1890000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE exposure ADD renamed_at timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE exposure DROP renamed_at');
  }
}
