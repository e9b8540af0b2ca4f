import { isPlatformAdmin, requirePermission, type Caller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { Not, type EntityManager } from 'typeorm';
import { MembershipEntity } from './membership.entity.js';

/** What concerns an owner takes an owner, so that an admin cannot become one. `what` completes "Only a team_owner may …". */
export function requireOwner(caller: Caller, teamId: string, what: string): void {
  if (isPlatformAdmin(caller)) return;
  const owns = caller.kind === 'user' && caller.teams.some((team) => team.teamId === teamId && team.role === 'team_owner');
  if (!owns) throw new AppError('forbidden', `Only a team_owner may ${what}.`);
}

/** Members see to their own key and may leave; what concerns others takes a manager of the team. */
export function requireSelfOrManager(caller: Caller, { teamId, userId }: { teamId: string; userId: string }): void {
  const isSelf = caller.kind === 'user' && caller.userId === userId;
  requirePermission(caller, teamId, isSelf ? 'readTeam' : 'manageTeam');
}

/** Throws `conflict` where the team would be left without an owner. The team's row is locked, so nobody else is leaving meanwhile. */
export async function requireAnotherOwner(manager: EntityManager, { teamId, userId }: MembershipEntity): Promise<void> {
  const hasAnother = await manager.existsBy(MembershipEntity, { teamId, role: 'team_owner', userId: Not(userId) });
  if (!hasAnother) throw new AppError('conflict', 'This is the last team_owner of the team. Make somebody else team_owner first.');
}
