import { createIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Hosts that were given back stay, and what is asked about those that a team has reads none of them. */
export class LiveHosts1893000000000 implements MigrationInterface {
  readonly name = 'LiveHosts1893000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX baremetal_instance_live_of_team ON baremetal_instance (team_id, created_at, instance_id) WHERE state NOT IN ('failed', 'cancelled', 'released')`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX baremetal_instance_live_of_team');
  }
}
