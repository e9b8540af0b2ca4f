import { requirePermission, type Caller, type Permission } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';
import { requireLiveCredential } from '../api-keys/live-credential.js';
import { MembershipEntity } from '../model/membership.entity.js';

/**
 * As `requirePermission`, by the role that the caller has now: what came along with the call may be some seconds old,
 * and what it gives away would outlast them. For use under the team's lock, under which roles change. Returns the
 * caller with that role.
 */
export async function requirePermissionNow(
  manager: EntityManager,
  caller: Caller,
  teamId: string,
  permission: Permission,
  what?: string,
): Promise<Caller> {
  const current = await callerNow(manager, caller, teamId);
  requirePermission(current, teamId, permission, what);
  return current;
}

async function callerNow(manager: EntityManager, caller: Caller, teamId: string): Promise<Caller> {
  if (caller.kind === 'system') return caller;
  if (caller.platformAdmin) {
    await requireLiveCredential(manager, caller);
    return caller;
  }
  // A key to another team opens nothing here, whatever its user is in this one.
  const isInReach = caller.teams.some((team) => team.teamId === teamId);
  const membership = isInReach ? await manager.findOneBy(MembershipEntity, { teamId, userId: caller.userId }) : null;
  if (membership) await requireLiveCredential(manager, caller);
  return { ...caller, teams: membership ? [{ teamId, role: membership.role }] : [] };
}
