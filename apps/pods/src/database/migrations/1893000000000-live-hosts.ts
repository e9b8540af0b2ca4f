import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Hosts that were given back stay, and listings of what there is read none of them. */
export class LiveHosts1893000000000 implements MigrationInterface {
  readonly name = 'LiveHosts1893000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX baremetal_instance_live_of_team ON baremetal_instance (team_id, created_at, instance_id) WHERE status NOT IN ('Failed', 'Released', 'Cancelled')`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX baremetal_instance_live_of_team');
  }
}
