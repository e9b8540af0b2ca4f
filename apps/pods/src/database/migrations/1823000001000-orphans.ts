import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Orphans1823000001000 implements MigrationInterface {
  readonly name = 'Orphans1823000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE orphan (
      gpuaas_id bigint,
      kind text,
      id text,
      run integer,
      found_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (gpuaas_id, kind, id, run)
    )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE orphan');
  }
}
