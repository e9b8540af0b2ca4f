import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Subscriptions that wait for what runs on them are found among any number of others. */
export class DrainingSubscriptions1879000000000 implements MigrationInterface {
  readonly name = 'DrainingSubscriptions1879000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX subscription_draining ON subscription (subscription_id) WHERE state = 'draining'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX subscription_draining');
  }
}
