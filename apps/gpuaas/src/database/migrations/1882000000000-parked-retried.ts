import { addParkedRetriedIndex, dropParkedRetriedIndex } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['baremetal_instance', 'baremetal_node', 'gpu', 'node', 'subscription', 'workload'];

/**
 * The operator asks for what waits: rows that are parked after a failure are found among all that only wait for their
 * next review.
 */
export class ParkedRetried1882000000000 implements MigrationInterface {
  readonly name = 'ParkedRetried1882000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) await addParkedRetriedIndex(runner, table);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await dropParkedRetriedIndex(runner, table);
  }
}
