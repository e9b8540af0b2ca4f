import type { MigrationInterface, QueryRunner } from 'typeorm';

export class VmInstances1830000000000 implements MigrationInterface {
  readonly name = 'VmInstances1830000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE vm_instance (
      instance_id uuid PRIMARY KEY,
      revision bigint NOT NULL,
      team_id uuid NOT NULL,
      name text NOT NULL,
      is_running boolean NOT NULL,
      created_at timestamptz(3) NOT NULL
    )`);
    await runner.query(
      'CREATE INDEX vm_instance_running ON vm_instance (team_id, created_at, instance_id) WHERE is_running',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE vm_instance');
  }
}
