import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The oldest memberships of a user are found without reading the others: the operator may have any number. */
export class FirstMemberships1889000000000 implements MigrationInterface {
  readonly name = 'FirstMemberships1889000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX membership_joined ON membership (user_id, created_at, id) WHERE status = 'active'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndex(runner, 'membership_joined');
  }
}
