import { takeTurn } from '@atoll/database';
import { AppError } from '@atoll/errors';
import type { EntityManager } from 'typeorm';

/** Teams that a user has joined: each of them travels with every call of the user. */
export const mostTeams = 200;
/** Of the invitations of a user, which others decide, the oldest so many are shown, and their teams travel too. */
const mostInvitations = 100;

const oldestInvitations = `SELECT i.* FROM membership i JOIN team it ON it.id = i.team_id AND it.deleted_at IS NULL
    WHERE i.user_id = u.id AND i.status = 'invited' ORDER BY i.created_at, i.id LIMIT ${mostInvitations}`;

/**
 * SQL: the memberships of the user `u` that open their teams, among them so many that wait to be accepted. Of no more
 * than these a row is read.
 */
export const openMemberships = `
  SELECT a.* FROM membership a WHERE a.user_id = u.id AND a.status = 'active'
  UNION ALL (${oldestInvitations})`;

/**
 * SQL: as `openMemberships`, but of the teams that the user has joined only the oldest `mostTeams` memberships. Only
 * the operator, and a user who joined more before there was a limit, has others.
 */
export const shownMemberships = `
  (SELECT a.* FROM membership a JOIN team ta ON ta.id = a.team_id AND ta.deleted_at IS NULL
    WHERE a.user_id = u.id AND a.status = 'active' ORDER BY a.created_at, a.id LIMIT ${mostTeams})
  UNION ALL (${oldestInvitations})`;

/** The operator may do everything in every team, so none travels. */
const roomQuery = `SELECT u.platform_admin OR (
    SELECT count(*) FROM membership m JOIN team t ON t.id = m.team_id AND t.deleted_at IS NULL
    WHERE m.user_id = u.id AND m.status = 'active') < $2 AS has_room
  FROM "user" u WHERE u.id = $1`;

/**
 * Within a transaction that has locked its team and its users before: whether the user may join another team. Until it
 * ends, others who let the same user join one wait.
 */
export async function hasRoomForTeam(manager: EntityManager, userId: string): Promise<boolean> {
  await takeTurn(manager, `teams of ${userId}`);
  const [row] = await manager.query<{ has_room: boolean }[]>(roomQuery, [userId, mostTeams]);
  return row?.has_room ?? false;
}

/** As `hasRoomForTeam`. Throws `conflict` where there is none. */
export async function requireRoomForTeam(manager: EntityManager, userId: string): Promise<void> {
  if (await hasRoomForTeam(manager, userId)) return;
  throw new AppError('conflict', `A user is a member of at most ${mostTeams} teams. Leave one of them first.`);
}
