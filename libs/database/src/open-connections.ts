import type { DataSource } from 'typeorm';
import { poolOf } from './data-source.js';

/**
 * Opens all connections that the pool of requests may have, for a process that is about to take requests. With an empty
 * pool each of the first requests waits for a connection of its own, and a replica that takes over under load would
 * refuse some of them as `unavailable`. What cannot be opened now is opened for whoever needs it; what nobody needs is
 * closed when it has been idle for 30 s.
 */
export async function openConnections(dataSource: DataSource): Promise<void> {
  const pool = poolOf(dataSource);
  const opened = await Promise.allSettled(Array.from({ length: pool.options.max }, () => pool.connect()));
  for (const each of opened) if (each.status === 'fulfilled') each.value.release();
}
