import type { EntityManager } from 'typeorm';

/** Locks a user until the transaction ends. Returns false if there is no such user. */
export async function lockUser(manager: EntityManager, userId: string): Promise<boolean> {
  const locked = await manager.query<object[]>('SELECT FROM "user" WHERE id = $1 FOR NO KEY UPDATE', [userId]);
  return locked.length > 0;
}
