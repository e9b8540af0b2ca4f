import { isPlatformAdmin, notFound, type Caller, type Permission, type TeamRole } from '@atoll/contracts';
import { type InvitationPath, type NewMember } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { Not, type EntityManager } from 'typeorm';
import { fieldError, refuseFields } from '../invalid-field.js';
import { MembershipEntity } from '../model/membership.entity.js';

export function hasPowerOfOwner(caller: Caller, teamId: string): boolean {
  return isPlatformAdmin(caller) || roleOf(caller, teamId) === 'team_owner';
}

/**
 * Changes to an owner need an owner, so that an admin cannot become one. `what` completes "Only a team_owner may …".
 */
export function requireOwner(caller: Caller, teamId: string, what: string): void {
  if (!hasPowerOfOwner(caller, teamId)) throw new AppError('forbidden', `Only a team_owner may ${what}.`);
}

/** Members may manage their own key and leave; changes to others need a manager of the team. */
export function permissionOver(userId: string, caller: Caller): Permission {
  return caller.kind === 'user' && caller.userId === userId ? 'readTeam' : 'manageTeam';
}

/**
 * Throws `conflict` if the team would be left without an owner. The team's row is locked, so no other owner can leave
 * meanwhile.
 */
export async function requireAnotherOwner(manager: EntityManager, { teamId, userId }: MembershipEntity): Promise<void> {
  const hasAnother = await manager.existsBy(MembershipEntity, { teamId, role: 'team_owner', userId: Not(userId) });
  if (!hasAnother)
    throw new AppError('conflict', 'This is the last team_owner of the team. Make somebody else team_owner first.');
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
