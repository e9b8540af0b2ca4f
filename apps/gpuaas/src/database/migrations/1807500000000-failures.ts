import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['subscription', 'workload'];

/** Why it could not be granted or started: kept while the steps are undone, which may fail for another reason. */
export class Failures1807500000000 implements MigrationInterface {
  readonly name = 'Failures1807500000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) {
      await runner.query(`ALTER TABLE ${table} ADD failure text`);
      await runner.query(`UPDATE ${table} SET failure = last_error->>'message' WHERE state = 'undoing'`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} DROP COLUMN failure`);
  }
}
