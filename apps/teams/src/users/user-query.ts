import { instantJson } from '../database/json.js';

/** The memberships that a caller acts with: all of the user's, or those in the teams of `$2`, in teams that are. */
const memberships = `membership m JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL
  WHERE m.user_id = u.id AND ($2::uuid[] IS NULL OR m.team_id = ANY($2))`;

/** The User `$1`. A key that opens certain teams only (`$2`) is shown those, and no platform. */
export const userQuery = `
  SELECT json_build_object(
    'id', u.id, 'email', u.email, 'name', u.name, 'timezone', u.timezone,
    'role', CASE WHEN u.platform_admin AND $2::uuid[] IS NULL THEN 'platform_admin' ELSE 'user' END,
    'teams', (SELECT COALESCE(json_agg(json_build_object('id', t.id, 'name', t.name, 'role', m.role) ORDER BY t.created_at, t.id), '[]')
      FROM ${memberships}),
    'card_count', (SELECT count(DISTINCT gpu_id) FROM team_capacity c, unnest(c.gpu_ids) gpu_id
      WHERE c.team_id IN (SELECT m.team_id FROM ${memberships})),
    'created_at', ${instantJson('u.created_at')}) AS "user"
  FROM "user" u WHERE u.id = $1`;
