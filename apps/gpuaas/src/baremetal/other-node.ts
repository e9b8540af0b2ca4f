import { takeTurn } from '@atoll/database';
import type { EntityManager } from 'typeorm';

/** The name of a node that stands for this host already. Cloned images share host keys; one host has one machine id. */
export async function otherNodeOf(
  manager: EntityManager,
  nodeId: string,
  hostKey: string,
  machineId: string,
): Promise<string | undefined> {
  await takeTurn(manager, `host ${hostKey}`);
  const [other] = await manager.query<{ name: string }[]>(
    `SELECT name FROM baremetal_node WHERE state <> 'removed' AND node_id <> $1 AND host_key = $2
       AND (machine_id = $3 OR machine_id = '' OR machine_id IS NOT NULL AND $3 = '') ORDER BY node_id LIMIT 1`,
    [nodeId, hostKey, machineId],
  );
  return other?.name;
}
