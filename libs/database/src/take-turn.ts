import type { EntityManager } from 'typeorm';

/**
 * Within a transaction: waits for each other one, of any process of the service, that has taken a turn at the same
 * thing, and keeps those that come later waiting until it ends. For limits: rows that others add at once are counted
 * only after their commit. A statement that is to see what the one before has committed comes after this one.
 */
export async function takeTurn(manager: EntityManager, at: string): Promise<void> {
  await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1::text, 0))`, [at]);
}
