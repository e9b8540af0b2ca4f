import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The memberships of a user apart from the invitations, of which others may make any number. */
export class OpenMemberships1880000000000 implements MigrationInterface {
  readonly name = 'OpenMemberships1880000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, `CREATE INDEX membership_active ON membership (user_id) WHERE status = 'active'`);
    await createIndex(
      runner,
      `CREATE INDEX membership_invited ON membership (user_id, created_at, id) WHERE status = 'invited'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX membership_invited');
    await runner.query('DROP INDEX membership_active');
  }
}
