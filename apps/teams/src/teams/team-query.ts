import { instantJson } from '@atoll/database';
import { memberJoins, memberJson } from '../views/member-query.js';

/** SQL for a whole Team, built where the data is: one statement, one round trip. */
function teamJson(team: string): string {
  return `json_build_object(
    'id', ${team}.id, 'name', ${team}.name, 'description', ${team}.description, 'created_at', ${instantJson(`${team}.created_at`)},
    'status', ${team}.status, 'is_suspended', ${team}.is_suspended,
    'require_second_factor', ${team}.require_second_factor,
    'has_pool_subscription', COALESCE((SELECT c.has_pool_subscription FROM team_capacity c WHERE c.team_id = ${team}.id), false),
    'members', (SELECT COALESCE(json_agg(${memberJson('m')} ORDER BY m.created_at, m.id), '[]')
      FROM membership m ${memberJoins('m')} WHERE m.team_id = ${team}.id),
    'policy_info', (SELECT json_build_object('policy_id', p.id, 'policy_name', p.name) FROM image_policy p WHERE p.id = ${team}.policy_id),
    'workspaces', (SELECT json_agg(json_build_object('id', w.id, 'name', w.name) ORDER BY w.created_at, w.id)
      FROM workspace w WHERE w.team_id = ${team}.id))`;
}

/** As `teamJson`, which comes as a text and not as an object. */
export function teamText(team: string): string {
  return `${teamJson(team)}::text`;
}

const oneTeam = (team: string) => `SELECT ${team} AS team FROM team t WHERE t.id = $1 AND t.deleted_at IS NULL`;
export const teamQuery = oneTeam(teamJson('t'));
export const teamTextQuery = oneTeam(teamText('t'));

/**
 * Whether `$1` is part of the name of a team, in upper or lower case, with no wildcards, or its whole id. Every team
 * matches an empty `$1`.
 */
export const isSought = `($1 = '' OR strpos(lower(name), lower($1)) > 0 OR id::text = lower($1))`;

/** The teams of one page of all teams, found by the index of those that are not deleted, from one of its ends. */
const fromEnd = (direction: 'ASC' | 'DESC', limit: string, offset: string, isNearer: string) => `
  SELECT id FROM (
    SELECT id FROM team WHERE deleted_at IS NULL AND (SELECT ${isNearer} FROM counted)
    ORDER BY created_at ${direction}, id ${direction} LIMIT (SELECT ${limit} FROM counted) OFFSET (SELECT ${offset} FROM counted)
  ) ${direction === 'ASC' ? 'first_half' : 'second_half'}`;

/**
 * A page of all teams. Not by `readPage`: counting 100,000 rows takes 10 ms, so their number is kept (`team_count`);
 * and a page in the second half is reached from the end, which the number tells the way from. All of it is of one
 * snapshot, with one row of the total alone where the page is empty.
 */
export const allTeamsQuery = `WITH counted AS MATERIALIZED (SELECT sum(live)::int AS total FROM team_count),
  page AS MATERIALIZED (
    ${fromEnd('ASC', '$1::bigint', '$2::bigint', '2 * $2::bigint <= total')}
    UNION ALL
    ${fromEnd(
      'DESC',
      'GREATEST(0, LEAST($1::bigint, total - $2::bigint))',
      'GREATEST(0, total - $2::bigint - $1::bigint)',
      '2 * $2::bigint > total',
    )}
  )
  SELECT total, team FROM counted LEFT JOIN (
    SELECT ${teamText('row')} AS team, row.created_at, row.id FROM team row WHERE id IN (SELECT id FROM page)
  ) found ON true ORDER BY created_at, id`;
