import type { EntityManager } from 'typeorm';

/** In SQL: whether the user of this id has a second factor, an authenticator or a passkey. */
export function hasFactor(userId: string): string {
  return `(EXISTS (SELECT FROM second_factor WHERE user_id = ${userId} AND is_confirmed) OR EXISTS (SELECT FROM passkey WHERE user_id = ${userId}))`;
}

/** Within a transaction: removes the authenticator, the recovery codes and the passkeys of a user. */
export async function removeFactors(manager: EntityManager, userId: string): Promise<void> {
  await manager.query('DELETE FROM recovery_code WHERE user_id = $1', [userId]);
  await manager.query('DELETE FROM second_factor WHERE user_id = $1', [userId]);
  await manager.query('DELETE FROM passkey WHERE user_id = $1', [userId]);
}
