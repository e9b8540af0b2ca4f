import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import { fits, isInInventory, isOffered, isWaiting } from './fitting.js';

/** Candidates that are looked at, from the best fit on. */
const candidates = 50;

/**
 * The free node for a request that this transaction has locked, the one that fits best; locked, and checked again under
 * the lock. A node for which an earlier request waits is left to that: the ids of such requests come back instead.
 */
export async function pickNode(manager: EntityManager, instanceId: string): Promise<{ nodeId?: string; earlier: string[] }> {
  const rows = await manager.query<{ node_id: string; earlier: string | null }[]>(
    `SELECT node_id, (
       SELECT w.instance_id FROM baremetal_instance w WHERE w.instance_id < $1 AND ${isWaiting('w')} AND ${fits('candidate', 'w')}
       ORDER BY w.instance_id LIMIT 1
     ) AS earlier
     FROM (
       SELECT n.* FROM baremetal_node n, baremetal_instance me WHERE me.instance_id = $1 AND ${isOffered('n')} AND ${fits('n', 'me')}
       ORDER BY n.gpu_count, n.memory_gb, n.cpu_cores, n.node_id LIMIT ${candidates}
     ) candidate`,
    [instanceId],
  );
  for (const { node_id, earlier } of rows) {
    if (earlier !== null) continue;
    // Whoever has it locked takes it, or changes it.
    const locked = await manager.query<object[]>(
      `SELECT FROM baremetal_node n WHERE node_id = $1 AND ${isOffered('n')} FOR NO KEY UPDATE SKIP LOCKED`,
      [node_id],
    );
    if (locked.length > 0) return { nodeId: node_id, earlier: [] };
  }
  return { earlier: [...new Set(rows.flatMap(({ earlier }) => earlier ?? []))] };
}

/** Why a request waits; undefined where nothing can match it any more. */
export async function waitingReason(manager: EntityManager, { instanceId }: BaremetalInstanceEntity): Promise<string | undefined> {
  const [found] = await manager.query<{ matching: number; suspended: boolean }[]>(
    `SELECT count(n.node_id)::int AS matching, NOT ${isWaiting('me')} AS suspended
     FROM baremetal_instance me LEFT JOIN baremetal_node n ON ${isInInventory('n')} AND ${fits('n', 'me')}
     WHERE me.instance_id = $1 GROUP BY me.instance_id`,
    [instanceId],
  );
  if (!found || found.matching === 0) return undefined;
  if (found.suspended) return 'The team is suspended: its requests wait.';
  return found.matching === 1 ? 'The one node that matches is not free.' : `None of the ${found.matching} nodes that match is free.`;
}

/** The first request that waits for what this node has. */
export async function firstWaitingFor(manager: EntityManager, nodeId: string): Promise<string[]> {
  const rows = await manager.query<{ instance_id: string }[]>(
    `SELECT w.instance_id FROM baremetal_node n, baremetal_instance w
     WHERE n.node_id = $1 AND ${isOffered('n')} AND ${isWaiting('w')} AND ${fits('n', 'w')} ORDER BY w.instance_id LIMIT 1`,
    [nodeId],
  );
  return rows.map(({ instance_id }) => instance_id);
}

/** The requests that wait and that this node, free or not, would fit. */
export async function allWaitingFor(manager: EntityManager, nodeId: string): Promise<string[]> {
  const rows = await manager.query<{ instance_id: string }[]>(
    `SELECT w.instance_id FROM baremetal_node n, baremetal_instance w WHERE n.node_id = $1 AND ${isWaiting('w')} AND ${fits('n', 'w')}`,
    [nodeId],
  );
  return rows.map(({ instance_id }) => instance_id);
}

/** The first of all requests that ask for the same, where a free node fits. */
export const servableRequests = `
  SELECT instance_id FROM (
    SELECT DISTINCT ON (region_id, gpu_model, gpu_count, cpu_cores, memory_gb) * FROM baremetal_instance w
    WHERE ${isWaiting('w')} ORDER BY region_id, gpu_model, gpu_count, cpu_cores, memory_gb, instance_id
  ) w WHERE EXISTS (SELECT FROM baremetal_node n WHERE ${isOffered('n')} AND ${fits('n', 'w')})`;
