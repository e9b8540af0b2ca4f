import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Metrics of a short window read what a subscription holds and what it gave back in the window, and no older rows. */
export class HeldSlicesOfSubscriptions1890000001000 implements MigrationInterface {
  readonly name = 'HeldSlicesOfSubscriptions1890000001000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(runner, 'CREATE INDEX held_slice_of_subscription ON held_slice (subscription_id, held_until)');
    await dropIndex(runner, 'held_slice_subscription_id_held_from_idx');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX ON held_slice (subscription_id, held_from)');
    await runner.query('DROP INDEX held_slice_of_subscription');
  }
}
