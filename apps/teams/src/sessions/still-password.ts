import type { EntityManager } from 'typeorm';

/**
 * Whether this, by which a password was found right, is still the hash of the user's password; until the transaction
 * ends it is not changed. To find a password right takes a while, in which another may take its place and end every
 * session.
 */
export async function isStillPassword(manager: EntityManager, userId: string, hash: string): Promise<boolean> {
  const found = await manager.query<object[]>(
    'SELECT FROM password WHERE user_id = $1 AND hash = $2 FOR NO KEY UPDATE',
    [userId, hash],
  );
  return found.length > 0;
}
