import type { EntityManager } from 'typeorm';

/**
 * The database's time in epoch milliseconds. What is stored is compared with this clock alone: those of two replicas,
 * or of a replica and the database, may differ.
 */
export async function databaseNowMs(manager: Pick<EntityManager, 'query'>): Promise<number> {
  const [row] = await manager.query<{ now: Date }[]>('SELECT clock_timestamp() AS now');
  if (!row) throw new Error('The database returned no time.');
  return row.now.getTime();
}
