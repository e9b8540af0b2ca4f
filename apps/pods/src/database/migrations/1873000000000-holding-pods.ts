import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A pod is accepted where its subscription has room beside those that hold vGPUs, however many have ended. */
export class HoldingPods1873000000000 implements MigrationInterface {
  readonly name = 'HoldingPods1873000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX pod_holding ON pod (subscription_id) INCLUDE (vgpus) WHERE state IN ('pending', 'pulling', 'running', 'restarting')`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX pod_holding');
  }
}
