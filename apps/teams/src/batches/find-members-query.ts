import { instantJson } from '@atoll/database';
import { memberJoins, memberJson, nameOf } from '../views/member-query.js';

/**
 * The members of the team `$1` whose name or address holds `$2` in either case: the page `$4` of `$3` entries, or the
 * last page that has any. Of the account of a person who has not accepted nothing is told; whether a second factor is
 * taken, only where `$5`.
 */
export const findMembersQuery = `
  WITH found AS MATERIALIZED (
    SELECT m.*, count(*) OVER () AS total
    FROM membership m JOIN "user" u ON u.id = m.user_id
    WHERE m.team_id = $1 AND (strpos(lower(u.email), lower($2)) > 0 OR strpos(lower(${nameOf('m', 'u')}), lower($2)) > 0)
  ), asked AS (
    SELECT COALESCE(max(total), 0)::int AS total, LEAST($4::int, GREATEST(0, (COALESCE(max(total), 0) - 1) / $3::int))::int AS page FROM found
  )
  SELECT asked.total, asked.page,
    EXISTS (SELECT FROM team t WHERE t.id = $1 AND t.deleted_at IS NULL) AS is_team,
    (SELECT COALESCE(json_agg(row.member), '[]') FROM (
      SELECT ${memberJson('m')}::jsonb || jsonb_build_object(
          'created_at', ${instantJson('m.created_at')},
          'joined_at', CASE m.status WHEN 'active' THEN ${instantJson('COALESCE(m.accepted_at, m.created_at)')} END,
          'timezone', CASE m.status WHEN 'active' THEN u.timezone ELSE 'UTC' END,
          'second_factor', $5::boolean AND m.status = 'active' AND EXISTS (
            SELECT FROM second_factor f WHERE f.user_id = m.user_id AND f.is_confirmed)) AS member
      FROM found m ${memberJoins('m')} ORDER BY m.created_at, m.id LIMIT $3::int OFFSET asked.page::bigint * $3::int) row) AS data
  FROM asked`;
