import {
  isPlatformAdmin,
  notFound,
  permissions,
  requirePermission,
  type Caller,
  type Permission,
  type TeamRole,
} from '@atoll/contracts';
import { type InvitationPath, type NewMember } from '@atoll/contracts/teams';
import type { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Not, type EntityManager } from 'typeorm';
import { fieldError, refuseFields } from '../invalid-field.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { confinement } from '../sessions/session-query.js';

/** Each Team shows its members, all of them. */
const mostMembers = 1000;

export function hasPowerOfOwner(caller: Caller, teamId: string): boolean {
  return isPlatformAdmin(caller) || roleOf(caller, teamId) === 'team_owner';
}

export function isManager(caller: Caller, teamId: string): boolean {
  const managers: readonly (TeamRole | undefined)[] = permissions.manageTeam;
  return isPlatformAdmin(caller) || managers.includes(roleOf(caller, teamId));
}

/**
 * Changes to an owner need an owner, so that an admin cannot become one. `what` completes "Only a team_owner may …".
 */
export function requireOwner(caller: Caller, teamId: string, what: string): void {
  if (!hasPowerOfOwner(caller, teamId)) throw new AppError('forbidden', `Only a team_owner may ${what}.`);
}

/**
 * Throws `conflict` if one of these users has a password that was set by a link which a team_admin of the locked team
 * was shown: that administrator may know the password, and would be team_owner with it.
 */
export async function requireNoneConfined(
  manager: EntityManager,
  teamId: string,
  userIds: readonly string[],
): Promise<void> {
  const confined = `SELECT FROM "user" u WHERE u.id = ANY ($1::uuid[]) AND ${confinement} = $2::uuid AND NOT u.confined_by_owner`;
  if ((await manager.query<object[]>(confined, [userIds, teamId])).length === 0) return;
  throw new AppError(
    'conflict',
    'A team_admin may know the password of this account: it was set by a link that one was shown, or before this was ' +
      'recorded. So it cannot become team_owner. Ask the operator for a one-time link, and set another password with it.',
  );
}

/** Throws `conflict` if the locked team has no room for so many more members. */
export async function requireRoomForMembers(manager: EntityManager, teamId: string, count: number): Promise<void> {
  if ((await manager.countBy(MembershipEntity, { teamId })) + count > mostMembers)
    throw new AppError('conflict', `A team has at most ${mostMembers} members.`);
}

/** Members may manage their own key and leave; changes to others need a manager of the team. */
export function permissionOver(userId: string, caller: Caller): Permission {
  return caller.kind === 'user' && caller.userId === userId ? 'readTeam' : 'manageTeam';
}

/**
 * Members may leave, or decline their invitation, without the second factor that the team requires: who has none could
 * otherwise not get out. Throws as `requirePermission`.
 */
export function requireMayRemove(caller: Caller, { teamId, userId }: { teamId: string; userId: string }): void {
  const isSelf = caller.kind === 'user' && caller.userId === userId;
  if (!isSelf || !roleOf(caller, teamId)) requirePermission(caller, teamId, permissionOver(userId, caller));
}

/**
 * Throws `forbidden` or `conflict` if the caller may not remove this member of the locked team. A person may decline an
 * invitation, also as the only team_owner: nobody is made to answer for a team that they never joined. A key to the
 * team declines nothing: others than the person may hold it.
 */
export async function requireRemovable(
  manager: EntityManager,
  caller: Caller,
  membership: MembershipEntity,
): Promise<void> {
  if (membership.role !== 'team_owner') return;
  requireOwner(caller, membership.teamId, 'remove a team_owner');
  const isSelf = caller.kind === 'user' && caller.scope === 'user' && caller.userId === membership.userId;
  if (!isSelf || membership.status !== 'invited') await requireAnotherOwner(manager, membership);
}

/**
 * Throws `conflict` if the team would be left without an owner. The team's row is locked, so no other owner can leave
 * meanwhile. An owner who is invited counts: the key to the team that was shown with the invitation acts as one.
 */
export async function requireAnotherOwner(manager: EntityManager, { teamId, userId }: MembershipEntity): Promise<void> {
  const hasAnother = await manager.existsBy(MembershipEntity, { teamId, role: 'team_owner', userId: Not(userId) });
  if (!hasAnother)
    throw new AppError('conflict', 'This is the last team_owner of the team. Make somebody else team_owner first.');
}

/**
 * Throws `not_found` for a team that does not exist or was deleted. `requirePermission` refuses such a team to members
 * before, but lets the operator pass.
 */
export async function requireTeam(statements: Statements, teamId: string): Promise<void> {
  const found = await statements.query('SELECT FROM team WHERE id = $1 AND deleted_at IS NULL', [teamId]);
  if (found.length === 0) throw notFound('team');
}

export function roleOf(caller: Caller, teamId: string): TeamRole | undefined {
  return caller.kind === 'user' ? caller.teams.find((team) => team.teamId === teamId)?.role : undefined;
}

/** Throws `not_found` for one that was accepted or revoked. The team's row is locked, so it is neither meanwhile. */
export async function findInvitation(
  manager: EntityManager,
  { team_id, invitation_id }: InvitationPath,
): Promise<MembershipEntity> {
  const membership = await manager.findOneBy(MembershipEntity, {
    id: invitation_id,
    teamId: team_id,
    status: 'invited',
  });
  if (!membership) throw notFound('invitation');
  return membership;
}

/** Throws `invalid_input` where an address is named twice. */
export function requireDistinct(members: NewMember[]): void {
  const addresses = members.map(({ email }) => email);
  const repeated = addresses.flatMap((address, index) => (addresses.indexOf(address) < index ? [index] : []));
  refuseFields(repeated.map((index) => fieldError(`members.${index}.email`, 'isUnique', 'must not be named twice')));
}
