import { instantJson, pageQuery } from '../database/json.js';
import { memberJoins, memberJson } from '../members/member-query.js';

/** SQL for a whole Team, built where the data is: one statement, one round trip. */
function teamJson(team: string): string {
  return `json_build_object(
    'id', ${team}.id, 'name', ${team}.name, 'description', ${team}.description, 'created_at', ${instantJson(`${team}.created_at`)},
    'status', ${team}.status, 'is_suspended', ${team}.is_suspended,
    'has_pool_subscription', COALESCE((SELECT c.has_pool_subscription FROM team_capacity c WHERE c.team_id = ${team}.id), false),
    'members', (SELECT json_agg(${memberJson('m')} ORDER BY m.created_at, m.id)
      FROM membership m ${memberJoins('m')} WHERE m.team_id = ${team}.id),
    'policy_info', (SELECT json_build_object('policy_id', p.id, 'policy_name', p.name) FROM image_policy p WHERE p.id = ${team}.policy_id),
    'workspaces', (SELECT json_agg(json_build_object('id', w.id, 'name', w.name) ORDER BY w.created_at, w.id)
      FROM workspace w WHERE w.team_id = ${team}.id))`;
}

export const teamQuery = `SELECT ${teamJson('t')} AS team FROM team t WHERE t.id = $1 AND t.deleted_at IS NULL`;

export const allTeamsQuery = pageQuery({ table: 'team', where: 'deleted_at IS NULL', json: teamJson('row') });

/** The teams whose ids are in `$3`. */
export const ownTeamsQuery = pageQuery({ table: 'team', where: 'deleted_at IS NULL AND id = ANY($3::uuid[])', json: teamJson('row') });
