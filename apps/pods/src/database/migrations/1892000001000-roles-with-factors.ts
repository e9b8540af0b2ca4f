import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which members joined a team that required a second factor: SSH keys without one open none of its VMs. */
export class RolesWithFactors1892000001000 implements MigrationInterface {
  readonly name = 'RolesWithFactors1892000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE member_role ADD required_factor boolean NOT NULL DEFAULT false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE member_role DROP required_factor');
  }
}
