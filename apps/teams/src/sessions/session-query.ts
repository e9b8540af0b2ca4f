import { instantJson } from '@atoll/database';
import { openMemberships } from '../changes/most-teams.js';
import { isAlive } from './session-policy.js';

/** A session as the statements below return it. */
export interface SessionRow {
  id: string;
  user_id: string;
  generation: number;
  /** Seconds until it ends of itself, unless it is refreshed. */
  idle_seconds: number;
  /** Seconds until it ends whatever happens. */
  life_seconds: number;
}

const row = `s.id, s.user_id, s.generation,
  extract(epoch FROM s.idle_until - now())::int AS idle_seconds, extract(epoch FROM s.expires_at - now())::int AS life_seconds`;

/** `$1` id, `$2` user, `$3` address, `$4` device, `$5` idle hours, `$6` days, `$7` whether with a second factor. */
export const openQuery = `
  INSERT INTO session AS s (id, user_id, address, device, has_second_factor, idle_until, expires_at)
  VALUES ($1, $2, $3, $4, $7, least(now() + $5 * interval '1 hour', now() + $6 * interval '1 day'), now() + $6 * interval '1 day')
  RETURNING ${row}`;

/** The network `$2` as one of the user `$1`; whether it is new, and not the first. */
export const rememberNetworkQuery = `
  WITH remembered AS (
    INSERT INTO log_in_network (user_id, network) VALUES ($1, $2) ON CONFLICT (user_id, network) DO UPDATE SET last_used_at = now()
    RETURNING xmax = 0 AS is_new)
  SELECT is_new AND EXISTS (SELECT FROM log_in_network WHERE user_id = $1) AS is_new_device FROM remembered`;

/**
 * SQL: the one team in which the user `u` acts, while nobody has shown that the address is theirs; null for one who
 * acts as a whole.
 */
export const confinement = `CASE WHEN u.verified_at IS NULL THEN u.confined_to_team_id END`;

/** Ends those sessions of the user `$1` that were used the longest ago, beyond `$2`. */
export const endSurplusQuery = `
  WITH ended AS (
    UPDATE session SET ended_at = now(), end_reason = 'too_many' WHERE id IN (
      SELECT id FROM session s WHERE user_id = $1 AND ${isAlive} ORDER BY last_used_at DESC, id DESC OFFSET $2) RETURNING id)
  SELECT id FROM ended`;

/**
 * Rotates the session `$1` where its refresh token is that of generation `$2`: of two who ask at once, one gets a row.
 * `$6` is the digest of the attempt.
 */
export const rotateQuery = `
  WITH rotated AS (
    UPDATE session s SET generation = s.generation + 1, rotated_at = now(), attempt_digest = $6, last_used_at = now(), address = $3,
      device = $4, idle_until = least(now() + $5 * interval '1 hour', s.expires_at)
    WHERE s.id = $1 AND s.generation = $2 AND ${isAlive} RETURNING s.*)
  SELECT ${row} FROM rotated s`;

/**
 * The session `$1` whatever its state; `is_recent`: rotated within the last `$2` seconds; `is_same_attempt`: rotated by
 * the attempt of the digest `$3`.
 */
export const findQuery = `
  SELECT ${row}, ${isAlive} AS is_alive, s.rotated_at > now() - $2 * interval '1 second' AS is_recent,
    coalesce(s.attempt_digest = $3, false) AS is_same_attempt
  FROM session s WHERE s.id = $1 FOR UPDATE`;

/** Ends those of the condition, for the reason `$1`. */
export function endQuery(condition: string): string {
  return `WITH ended AS (
    UPDATE session SET ended_at = now(), end_reason = $1 WHERE ended_at IS NULL AND ${condition} RETURNING id, user_id)
    SELECT id, user_id FROM ended`;
}

/** The live sessions of the user `$1`; `current` is the one of id `$2`. */
export const listQuery = `
  SELECT s.id, ${instantJson('s.created_at')} AS created_at, ${instantJson('s.last_used_at')} AS last_used_at, s.address, s.device,
    s.id = $2::uuid AS current
  FROM session s WHERE s.user_id = $1 AND ${isAlive} ORDER BY s.created_at DESC, s.id DESC LIMIT 1000`;

/**
 * What the live session `$1` opens; `$2`: whether the operator takes a second factor. As for keys, the operator's teams
 * are left out: the operator may do everything in each.
 */
export const credentialQuery = `
  SELECT s.id AS session_id, ${instantJson('s.created_at')} AS opened_at, s.user_id, u.platform_admin AND (s.has_second_factor OR NOT $2::boolean) AS platform_admin,
    u.platform_admin AND $2::boolean AND NOT s.has_second_factor AS operator_lacks_second_factor, u.timezone, CASE WHEN ${confinement} IS NULL THEN 'user' ELSE 'membership' END AS scope,
    (SELECT COALESCE(json_agg(json_build_object('team_id', m.team_id, 'role', m.role,
        'lacks_second_factor', t.require_second_factor AND NOT s.has_second_factor) ORDER BY m.created_at, m.id), '[]')
      FROM (${openMemberships}) m JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL
      WHERE NOT u.platform_admin AND (${confinement} IS NULL OR m.team_id = ${confinement})) AS teams
  FROM session s JOIN "user" u ON u.id = s.user_id
  WHERE s.id = $1 AND ${isAlive}`;
