import type { Caller } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';

/** SQL: joins the membership `invited` of the key `k`, where its user has not accepted yet. */
export const joinInvited = `LEFT JOIN membership invited
  ON invited.team_id = k.team_id AND invited.user_id = k.user_id AND invited.status = 'invited'`;

/**
 * SQL, beside `joinInvited`: who holds the key in place of its user; null where that is the user, or nobody knows.
 * Whoever was shown the key of somebody they invited holds it until that person has accepted.
 */
export const heldBy = 'CASE WHEN invited.id IS NOT NULL THEN k.shown_to END';

/**
 * The user who is shown the keys that this caller issues: who holds the caller's own credential, so that nobody gains
 * further holders by the keys of those they invited. null: the operator, by a session or a key of the operator as a
 * whole, or a service.
 */
export async function viewerOf(manager: EntityManager, caller: Caller): Promise<string | null> {
  if (caller.kind === 'system') return null;
  const [row] = await manager.query<{ viewer: string | null }[]>(
    `SELECT coalesce(${heldBy}, CASE WHEN NOT (u.platform_admin AND k.team_id IS NULL) THEN u.id END) AS viewer
     FROM "user" u LEFT JOIN api_key k ON k.id = $2 ${joinInvited} WHERE u.id = $1`,
    [caller.userId, caller.credential.id],
  );
  return row?.viewer ?? null;
}
