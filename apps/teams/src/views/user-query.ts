import { instantJson } from '@atoll/database';
import { shownMemberships } from '../changes/most-teams.js';
import { sentName } from './member-query.js';

/**
 * The memberships of the user `$1` that a caller is shown: those that open teams of the user, or those in the teams of
 * `$2`, in teams that are. Read once.
 */
const shown = `shown AS MATERIALIZED (
    SELECT m.team_id, m.role, m.status, t.name, t.created_at FROM "user" u CROSS JOIN LATERAL (
      SELECT * FROM (${shownMemberships}) open WHERE $2::uuid[] IS NULL
      UNION ALL SELECT * FROM membership WHERE user_id = u.id AND team_id = ANY($2)
    ) m JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL
    WHERE u.id = $1
  )`;

/**
 * The User `$1`. Who acts in one team only (`$2`) is shown that one and no platform; and until the user has accepted
 * that membership, nothing of the user but what was sent with the invitation. Second factors are shown to the user
 * alone (`$3`): by a session, or a key that opens all teams.
 */
export const userQuery = `
  WITH ${shown}
  SELECT json_build_object(
    'id', u.id, 'email', u.email, 'name', CASE WHEN invited.id IS NULL THEN u.name ELSE ${sentName('invited', 'u')} END,
    'timezone', CASE WHEN invited.id IS NULL THEN u.timezone ELSE 'UTC' END,
    'role', CASE WHEN u.platform_admin AND $2::uuid[] IS NULL THEN 'platform_admin' ELSE 'user' END,
    'teams', (SELECT COALESCE(json_agg(json_build_object('id', s.team_id, 'name', s.name, 'role', s.role, 'status', s.status) ORDER BY s.created_at, s.team_id), '[]')
      FROM shown s),
    'card_count', (SELECT count(DISTINCT gpu_id) FROM team_capacity c, unnest(c.gpu_ids) gpu_id
      WHERE c.team_id IN (SELECT s.team_id FROM shown s)),
    'second_factor', CASE WHEN $3::boolean THEN json_build_object(
      'is_set', EXISTS (SELECT FROM second_factor f WHERE f.user_id = u.id AND f.is_confirmed),
      'recovery_codes', (SELECT count(*) FROM recovery_code r WHERE r.user_id = u.id),
      'passkeys', (SELECT count(*) FROM passkey p WHERE p.user_id = u.id)) END,
    'created_at', ${instantJson('COALESCE(invited.created_at, u.created_at)')}) AS "user"
  FROM "user" u LEFT JOIN membership invited
    ON invited.user_id = u.id AND invited.team_id = ANY($2) AND invited.status = 'invited'
  WHERE u.id = $1`;
