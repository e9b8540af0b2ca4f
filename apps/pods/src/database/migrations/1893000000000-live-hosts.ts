import { createIndex, dropIndex } from '@atoll/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const all = '(team_id, created_at, instance_id)';

/** Hosts that were given back stay: listings of what there is read none of them, and a page of all reads its own. */
export class LiveHosts1893000000000 implements MigrationInterface {
  readonly name = 'LiveHosts1893000000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndex(
      runner,
      `CREATE INDEX baremetal_instance_live_of_team ON baremetal_instance ${all} WHERE status NOT IN ('Failed', 'Released', 'Cancelled')`,
    );
    await createIndex(runner, `CREATE INDEX baremetal_instance_of_team ON baremetal_instance ${all}`);
    await dropIndex(runner, 'baremetal_instance_team_id_idx');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX ON baremetal_instance (team_id)');
    await runner.query('DROP INDEX baremetal_instance_live_of_team, baremetal_instance_of_team');
  }
}
