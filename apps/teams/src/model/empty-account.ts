import { hasFactor } from './factors.js';

/**
 * In SQL: whether the account of the user `u` was made by an invitation and has nothing yet, neither a way to log in
 * nor a team that was joined.
 */
export const isEmptyAccount = `(u.verified_at IS NULL AND NOT u.platform_admin AND NOT ${hasFactor('u.id')}
      AND NOT EXISTS (SELECT FROM password w WHERE w.user_id = u.id)
      AND NOT EXISTS (SELECT FROM user_identity i WHERE i.user_id = u.id)
      AND NOT EXISTS (SELECT FROM membership m WHERE m.user_id = u.id AND m.status = 'active')
      AND NOT EXISTS (SELECT FROM api_key k WHERE k.user_id = u.id AND k.team_id IS NULL))`;
