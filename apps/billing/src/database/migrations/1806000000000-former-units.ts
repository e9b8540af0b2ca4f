import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Prices that were replaced by one of another unit keep theirs. */
export class FormerUnits1806000000000 implements MigrationInterface {
  readonly name = 'FormerUnits1806000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE price ADD COLUMN IF NOT EXISTS former_unit text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE price DROP former_unit');
  }
}
