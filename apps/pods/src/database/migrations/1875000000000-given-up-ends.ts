import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Runs whose end was given up, with the start whose workload is held for them. */
export class GivenUpEnds1875000000000 implements MigrationInterface {
  readonly name = 'GivenUpEnds1875000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE given_up_end (
      kind text,
      id uuid,
      run integer,
      start integer,
      gpuaas_id bigint NOT NULL,
      try_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (kind, id, run, start)
    )`);
    await runner.query('CREATE INDEX ON given_up_end (gpuaas_id, try_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE given_up_end');
  }
}
