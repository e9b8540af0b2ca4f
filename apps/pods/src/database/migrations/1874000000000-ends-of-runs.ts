import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A run is billed until its end, however late that is seen. */
export class EndsOfRuns1874000000000 implements MigrationInterface {
  readonly name = 'EndsOfRuns1874000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod ADD COLUMN IF NOT EXISTS ended_at timestamptz(3)');
    await runner.query('ALTER TABLE vm ADD COLUMN IF NOT EXISTS ended_at timestamptz(3)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE pod DROP COLUMN ended_at');
    await runner.query('ALTER TABLE vm DROP COLUMN ended_at');
  }
}
