import type { Caller } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';

/**
 * SQL: who holds the key `k` in place of its user; null where that is the user, or nobody knows. Whoever was shown the
 * key of somebody they invited holds it until that person has accepted.
 */
export const heldBy = `(SELECT k.shown_to FROM membership invited
  WHERE invited.team_id = k.team_id AND invited.user_id = k.user_id AND invited.status = 'invited')`;

/**
 * The user who is shown the keys that this caller issues: who holds the caller's own credential, so that nobody gains
 * further holders by the keys of those they invited. null: the operator, by whatever credential, or a service.
 */
export async function viewerOf(manager: EntityManager, caller: Caller): Promise<string | null> {
  if (caller.kind === 'system') return null;
  const [row] = await manager.query<{ viewer: string | null }[]>(
    `SELECT coalesce(${heldBy}, CASE WHEN NOT u.platform_admin THEN u.id END) AS viewer
     FROM "user" u LEFT JOIN api_key k ON k.id = $2 WHERE u.id = $1`,
    [caller.userId, caller.credential.id],
  );
  return row?.viewer ?? null;
}
