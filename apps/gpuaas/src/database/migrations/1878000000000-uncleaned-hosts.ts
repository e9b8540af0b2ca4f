import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A check by hand of a host that could not be cleaned left it `Check failed`, or checking, with its last tenant on it.
 * It is to be cleaned again. A host whose tenant had root waits for a reinstall, and of one whose instance has no
 * password any more nothing is left.
 */
export class UncleanedHosts1878000000000 implements MigrationInterface {
  readonly name = 'UncleanedHosts1878000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `WITH uncleaned AS MATERIALIZED (
         SELECT node.node_id, node.state FROM baremetal_node node JOIN baremetal_instance instance USING (instance_id)
         WHERE node.state IN ('check_failed', 'checking') AND NOT tenant_sudo AND instance.password IS NOT NULL
       ), moved AS (
         UPDATE baremetal_node SET state = 'clean_failed', entered_at = clock_timestamp(), deadline_at = NULL, due_at = clock_timestamp(), parked_until = NULL,
           attempts = 0, claim_token = NULL, claimed_until = NULL, revision = revision + 1
         FROM uncleaned WHERE baremetal_node.node_id = uncleaned.node_id
         RETURNING baremetal_node.node_id, uncleaned.state AS from_state, entered_at
       )
       INSERT INTO machine_history (machine, instance, from_state, to_state, event, actor, reason, at)
       SELECT 'baremetal_node', node_id, from_state, 'clean_failed', 'SPOIL', 'system:gpuaas', 'The host was never cleaned after its last tenant.', entered_at FROM moved`,
    );
  }

  async down(): Promise<void> {}
}
