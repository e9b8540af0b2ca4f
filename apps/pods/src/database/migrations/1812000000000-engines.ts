import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The id of the installation, and the container engines that it uses. */
export class Engines1812000000000 implements MigrationInterface {
  readonly name = 'Engines1812000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE installation (id integer PRIMARY KEY, installation_id uuid NOT NULL)');
    await runner.query('CREATE TABLE engine (socket_path text PRIMARY KEY, identity text NOT NULL)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE engine, installation');
  }
}
