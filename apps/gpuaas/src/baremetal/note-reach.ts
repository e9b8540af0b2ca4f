import type { EntityManager } from 'typeorm';

/** `reason`: why the platform cannot work on the host, so that the node is not offered; null where it can. */
export async function noteReach(manager: EntityManager, nodeId: string, reason: string | null): Promise<void> {
  await manager.query(
    `UPDATE baremetal_node SET unreachable_reason = $2, unreachable_since = CASE WHEN $2::text IS NOT NULL THEN coalesce(unreachable_since, clock_timestamp()) END
     WHERE node_id = $1`,
    [nodeId, reason],
  );
}
