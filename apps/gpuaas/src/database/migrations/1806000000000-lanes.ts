import { addLanes, dropLanes } from '@atoll/state-machine';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = ['node', 'gpu', 'subscription', 'workload'];
const nodesOf = (table: string) => `coalesce(
  (SELECT array_agg(DISTINCT node_id::text) FROM lease JOIN gpu USING (gpu_id) WHERE lease.${table}_id = ${table}.${table}_id),
  ARRAY['team:' || team_id]
)`;
const lanes: Record<string, string> = {
  node: 'ARRAY[node_id::text]',
  gpu: 'ARRAY[node_id::text]',
  subscription: nodesOf('subscription'),
  workload: nodesOf('workload'),
};

/** Machines wait for each other by lane, and what is idle is found by an index of its own. */
export class Lanes1806000000000 implements MigrationInterface {
  readonly name = 'Lanes1806000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) {
      await addLanes(runner, table);
      await runner.query(`UPDATE ${table} SET (lane, further_lanes) = (SELECT lanes[1], lanes[2:] FROM (SELECT ${lanes[table]} AS lanes) assigned)
        WHERE due_at IS NOT NULL OR parked_until IS NOT NULL`);
    }
    await runner.query(`CREATE INDEX gpu_lost ON gpu (node_id) WHERE state = 'offline' AND pool_id IS NOT NULL`);
    await runner.query('CREATE INDEX node_failing ON node (node_id) WHERE failures > 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX gpu_lost, node_failing');
    for (const table of tables) await dropLanes(runner, table);
  }
}
