import type { MigrationInterface, QueryRunner } from 'typeorm';

export class BaremetalAndOwners1822000000000 implements MigrationInterface {
  readonly name = 'BaremetalAndOwners1822000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE baremetal_instance (
      instance_id uuid NOT NULL, revision bigint NOT NULL, team_id uuid NOT NULL, workspace_id uuid NOT NULL, region_id bigint,
      name text NOT NULL, status text NOT NULL, created_at timestamptz(3) NOT NULL, CONSTRAINT baremetal_instance_pkey PRIMARY KEY (instance_id))`);
    await runner.query('CREATE INDEX baremetal_instance_team_id_idx ON baremetal_instance (team_id)');
    await runner.query(
      'CREATE TABLE ssh_key_owner (user_id uuid NOT NULL, revision integer NOT NULL, CONSTRAINT ssh_key_owner_pkey PRIMARY KEY (user_id))',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE ssh_key_owner');
    await runner.query('DROP TABLE baremetal_instance');
  }
}
