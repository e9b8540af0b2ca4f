import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['pod', 'vm', 'shared_volume', 'exposure'];

/** Why a row failed: kept while its resources are given back, which may fail for another reason. */
export class Failures1883000000000 implements MigrationInterface {
  readonly name = 'Failures1883000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) {
      await runner.query(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS failure jsonb`);
      await runner.query(`UPDATE ${table} SET failure = last_error WHERE state = 'failing'`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} DROP COLUMN failure`);
  }
}
