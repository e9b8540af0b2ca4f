import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whose SSH keys the VMs of a team let in, and which a VM was told. */
export class VmKeys1870000000000 implements MigrationInterface {
  readonly name = 'VmKeys1870000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE member_role (
      team_id uuid NOT NULL,
      user_id uuid NOT NULL,
      role text,
      revision bigint NOT NULL,
      PRIMARY KEY (team_id, user_id)
    )`);
    await runner.query('CREATE INDEX ON member_role (user_id)');
    await runner.query(`ALTER TABLE vm ADD COLUMN placed_keys text NOT NULL DEFAULT ''`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE vm DROP COLUMN placed_keys');
    await runner.query('DROP TABLE member_role');
  }
}
