import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which engine was first found at a socket is kept with the cluster. */
export class Clusters1823000000000 implements MigrationInterface {
  readonly name = 'Clusters1823000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE cluster (
      gpuaas_id bigint PRIMARY KEY,
      driver text NOT NULL,
      public_host text NOT NULL,
      socket text,
      url text,
      door_image text,
      sealed_tls text,
      is_unreachable boolean NOT NULL,
      setting bigint NOT NULL,
      revision bigint NOT NULL,
      identity text
    )`);
    await runner.query('DROP TABLE engine');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE engine (socket_path text PRIMARY KEY, identity text NOT NULL)');
    await runner.query('DROP TABLE cluster');
  }
}
