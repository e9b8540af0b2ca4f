import { growthRefusal, isPlatformAdmin, notFound, type CallContext, type Caller } from '@atoll/contracts';
import {
  membershipChanged,
  teamUpdated,
  type TeamStanding,
  type TeamUpdate,
  type WorkspaceStanding,
} from '@atoll/contracts/teams';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { In, IsNull, type EntityManager } from 'typeorm';
import { MembershipEntity } from '../model/membership.entity.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';
import { TeamEntity } from '../model/team.entity.js';
import { requireRoomForTeam } from './most-teams.js';

/** What members were before the change that is published. */
interface MembersBefore {
  /** Whether any of them had accepted an invitation, or needed none. */
  readonly hadJoined: boolean;
}

/**
 * How every change of a team begins and ends: its row is locked, so that changes of one team are serial; then its next
 * revision is published.
 */
@Injectable()
export class TeamChanges {
  constructor(private readonly outbox: Outbox) {}

  /**
   * The team, locked until the transaction ends. Throws `not_found` for one that is unknown or deleted; `what` is what
   * the caller looked for.
   */
  async lock(manager: EntityManager, teamId: string, what = 'team'): Promise<TeamEntity> {
    const team = await manager.findOne(TeamEntity, {
      where: { id: teamId, deletedAt: IsNull() },
      lock: { mode: 'for_no_key_update' },
    });
    if (!team) throw notFound(what);
    return team;
  }

  /**
   * Like `lock`, for operations that grant something to a team or change it: a suspended team may only read and
   * release, and a team in deletion gets nothing new.
   */
  async lockForGrowth(manager: EntityManager, teamId: string, caller: Caller, what?: string): Promise<TeamEntity> {
    const team = await this.lock(manager, teamId, what);
    requireGrowing(team, isPlatformAdmin(caller));
    return team;
  }

  /** Of a locked team. Nobody joins one that is suspended or goes, unless the operator sees to it. */
  requireMayJoin(team: TeamEntity, { caller }: CallContext): void {
    requireGrowing(team, caller.kind === 'user' && caller.platformAdmin);
  }

  /** Writes a locked team as its next revision and publishes its standing, without its workspaces. */
  async save(manager: EntityManager, team: TeamEntity, context?: CallContext): Promise<void> {
    await this.writeNextRevision(manager, team);
    await this.publish(manager, team, { team: await standingOf(manager, team) }, context);
  }

  /** Makes a change of one workspace the team's next revision and publishes it. */
  async saveWorkspace(
    manager: EntityManager,
    team: TeamEntity,
    workspace: WorkspaceStanding,
    context: CallContext,
  ): Promise<void> {
    await this.writeNextRevision(manager, team);
    await this.publish(manager, team, { workspaces: [workspace] }, context);
  }

  /** Publishes a team that this transaction has created, whole. */
  async publishCreated(
    manager: EntityManager,
    team: TeamEntity,
    workspaces: WorkspaceStanding[],
    context: CallContext,
  ): Promise<void> {
    await this.publish(
      manager,
      team,
      { team: await standingOf(manager, team), workspaces, is_complete: true },
      context,
    );
  }

  /** Makes a change (or the removal) of one member the team's next revision, and publishes it. */
  async saveMember(
    manager: EntityManager,
    team: TeamEntity,
    userId: string,
    context: CallContext,
    before: MembersBefore,
  ): Promise<void> {
    await this.saveMembers(manager, team, [userId], context, before);
  }

  /** As `saveMember`, of several members at one revision. */
  async saveMembers(
    manager: EntityManager,
    team: TeamEntity,
    userIds: readonly string[],
    context: CallContext,
    before: MembersBefore,
  ): Promise<void> {
    await this.writeNextRevision(manager, team);
    await this.publishMembers(manager, team, userIds, context, before);
  }

  /**
   * Whether somebody was invited to the locked team, who is a member from now on. Throws as `requireMayJoin` and
   * `requireRoomForTeam`.
   */
  async acceptInvitation(
    manager: EntityManager,
    team: TeamEntity,
    userId: string,
    context: CallContext,
  ): Promise<boolean> {
    const invited = { teamId: team.id, userId, status: 'invited' as const };
    if (!(await manager.existsBy(MembershipEntity, invited))) return false;
    this.requireMayJoin(team, context);
    await requireRoomForTeam(manager, userId);
    await manager.update(MembershipEntity, invited, {
      status: 'active',
      acceptedAt: () => 'now()',
      requiredFactorAtJoin: team.requireSecondFactor,
    });
    await this.saveMember(manager, team, userId, context, { hadJoined: false });
    return true;
  }

  /** Publishes these members of a team as they are now, or that they are none. */
  async publishMembers(
    manager: EntityManager,
    { id, revision }: TeamEntity,
    userIds: readonly string[],
    context: CallContext,
    { hadJoined }: MembersBefore,
  ): Promise<void> {
    const members = await manager.findBy(MembershipEntity, { teamId: id, userId: In(userIds) });
    const memberOf = new Map(members.map((member) => [member.userId, member]));
    const payloads = userIds.map((userId) => {
      const member = memberOf.get(userId);
      const is_invited = member?.status === 'invited';
      const required_factor_at_join = member?.status === 'active' && member.requiredFactorAtJoin !== false;
      return {
        team_id: id,
        revision,
        user_id: userId,
        role: member?.role ?? null,
        ...(is_invited && { is_invited }),
        ...(required_factor_at_join && { required_factor_at_join }),
        ...(!hadJoined && { had_not_joined: true }),
      };
    });
    await this.outbox.addAll(manager, membershipChanged, payloads, context);
  }

  private async publish(
    manager: EntityManager,
    { id, revision }: TeamEntity,
    change: Partial<Omit<TeamUpdate, 'team_id' | 'revision'>>,
    context?: CallContext,
  ): Promise<void> {
    const update = { team_id: id, revision, workspaces: [], is_complete: false, ...change };
    await this.outbox.add(manager, teamUpdated, update, context);
  }

  private async writeNextRevision(manager: EntityManager, team: TeamEntity): Promise<void> {
    team.revision += 1;
    await manager.update(TeamEntity, { id: team.id }, team);
  }
}

function requireGrowing(team: TeamEntity, isByOperator: boolean): void {
  const beingDeleted = team.status === 'deleting' ? 'team' : undefined;
  const refusal = growthRefusal({ beingDeleted, isSuspended: team.isSuspended }, isByOperator);
  if (refusal) throw refusal;
}

async function standingOf(
  manager: EntityManager,
  { id, name, isSuspended, status, deletedAt }: TeamEntity,
): Promise<TeamStanding> {
  const first = await manager.findOneBy(WorkspaceEntity, { teamId: id, isDefault: true });
  return {
    name,
    is_suspended: isSuspended,
    status: deletedAt ? 'deleted' : status,
    default_workspace_id: first?.id ?? null,
  };
}
