import type { EntityManager } from 'typeorm';

/**
 * Writes a line into the log of a pod on behalf of the platform, of stream `platform`, within the transaction of what
 * it tells; it is in the log within seconds. `message`: one line for the team of the pod.
 */
export async function writePlatformLine(manager: EntityManager, podId: string, message: string): Promise<void> {
  await manager.query('INSERT INTO platform_line (pod_id, message) VALUES ($1, $2)', [podId, message]);
}
