import { instantJson } from '@atoll/database';

/**
 * SQL for what a TeamMember needs beyond the membership `membership`: the user `u`, and of the live keys the newest,
 * `k`.
 */
export function memberJoins(membership: string): string {
  return `JOIN "user" u ON u.id = ${membership}.user_id
    LEFT JOIN LATERAL (
      SELECT api_key.mask, api_key.expiry_date, api_key.ip_whitelist FROM api_key
      WHERE api_key.team_id = ${membership}.team_id AND api_key.user_id = ${membership}.user_id
        AND api_key.revoked_at IS NULL AND (api_key.expiry_date IS NULL OR api_key.expiry_date > now())
      ORDER BY api_key.created_at DESC LIMIT 1
    ) k ON true`;
}

/** SQL for the name that was sent with an invitation; where none is known, the address without its domain. */
export function sentName(membership: string, user: string): string {
  return `COALESCE(NULLIF(${membership}.name, ''), split_part(${user}.email, '@', 1))`;
}

/** SQL for the name of a member: their own once they have accepted, until then the one sent with the invitation. */
export function nameOf(membership: string, user: string): string {
  return `CASE ${membership}.status WHEN 'active' THEN ${user}.name ELSE ${sentName(membership, user)} END`;
}

/** SQL for a TeamMember, the key masked. */
export function memberJson(membership: string): string {
  return `json_build_object(
    'user_id', ${membership}.user_id, 'email', u.email, 'name', ${nameOf(membership, 'u')}, 'role', ${membership}.role,
    'status', ${membership}.status,
    'api_key', k.mask, 'api_token', k.mask IS NOT NULL,
    'expiry_date', ${instantJson('k.expiry_date')}, 'ip_whitelist', COALESCE(k.ip_whitelist, ''))`;
}

export const memberQuery = `SELECT ${memberJson('m')} AS member FROM membership m ${memberJoins('m')} WHERE m.team_id = $1 AND m.user_id = $2`;
