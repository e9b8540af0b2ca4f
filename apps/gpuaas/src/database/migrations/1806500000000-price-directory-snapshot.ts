import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Prices that were fetched by page numbers may lack some that were replaced meanwhile: they are fetched once more, by
 * id, and this table says that they have been. `price_snapshot` stays for replicas of the release before, which must
 * not take the new fetch for theirs.
 */
export class PriceDirectorySnapshot1806500000000 implements MigrationInterface {
  readonly name = 'PriceDirectorySnapshot1806500000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE price_directory_snapshot (completed_at timestamptz(3) PRIMARY KEY)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE price_directory_snapshot');
  }
}
