import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What has ended is not read when what is live is asked for. */
export class BaremetalIndexes1875000000000 implements MigrationInterface {
  readonly name = 'BaremetalIndexes1875000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX baremetal_instance_active ON baremetal_instance (team_id) WHERE state = 'active'`,
    );
    await createIndex(
      runner,
      `CREATE INDEX baremetal_attempt_running ON baremetal_attempt (node_id) WHERE outcome = 'running'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX baremetal_instance_active, baremetal_attempt_running');
  }
}
