import { takeTurn } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import type { BaremetalNodeState } from '../../model/baremetal-node.machine.js';

/** Whether undoing is retried automatically. A host whose tenant had root waits for its reinstall. */
export function isToBeCleaned({ state, instanceId, tenantSudo }: BaremetalNodeEntity): boolean {
  return (state as BaremetalNodeState) === 'clean_failed' && instanceId !== null && !tenantSudo;
}

/** Whether a tenant had root on the host, and nobody has said since that it was installed anew. */
export function isToBeReinstalled({ state, instanceId, tenantSudo }: BaremetalNodeEntity): boolean {
  return (state as BaremetalNodeState) === 'clean_failed' && instanceId !== null && tenantSudo;
}

/** `reason`: why the platform cannot work on the host, so that the node is not offered; null where it can. */
export async function noteReach(manager: EntityManager, nodeId: string, reason: string | null): Promise<void> {
  await manager.query(
    `UPDATE baremetal_node SET unreachable_reason = $2, unreachable_since = CASE WHEN $2::text IS NOT NULL THEN coalesce(unreachable_since, clock_timestamp()) END
     WHERE node_id = $1`,
    [nodeId, reason],
  );
}

/** The name of a node that stands for this host already. Cloned images share host keys; one host has one machine id. */
export async function otherNodeOf(
  manager: EntityManager,
  { nodeId, hostKey, machineId }: { readonly nodeId: string; readonly hostKey: string; readonly machineId: string },
): Promise<string | undefined> {
  await takeTurn(manager, `host ${hostKey}`);
  const [other] = await manager.query<{ name: string }[]>(
    `SELECT name FROM baremetal_node WHERE state <> 'removed' AND node_id <> $1 AND host_key = $2
       AND (machine_id = $3 OR machine_id = '' OR machine_id IS NOT NULL AND $3 = '') ORDER BY node_id LIMIT 1`,
    [nodeId, hostKey, machineId],
  );
  return other?.name;
}
