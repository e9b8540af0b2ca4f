import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Prices that are known already are fetched once more, with their currency. */
export class PriceCurrency1885000000000 implements MigrationInterface {
  readonly name = 'PriceCurrency1885000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE price ADD COLUMN IF NOT EXISTS currency text');
    await runner.query('DELETE FROM price_directory_snapshot');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE price DROP currency');
  }
}
