import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Clusters1823000000000 implements MigrationInterface {
  readonly name = 'Clusters1823000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE cluster (
      gpuaas_id bigint PRIMARY KEY REFERENCES gpuaas,
      driver text NOT NULL,
      public_host text NOT NULL,
      socket text,
      url text,
      door_image text,
      sealed_tls text,
      setting bigint NOT NULL,
      revision bigint NOT NULL,
      identity text,
      status text NOT NULL,
      since timestamptz(3),
      checks jsonb NOT NULL,
      next_check_at timestamptz(3) NOT NULL
    )`);
    await runner.query(`CREATE INDEX cluster_due ON cluster (next_check_at) WHERE driver <> 'simulated'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE cluster');
  }
}
