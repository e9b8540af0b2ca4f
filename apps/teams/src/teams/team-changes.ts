import { membershipChanged, notFound, teamChanged, type CallContext, type Caller, type TeamRole, isPlatformAdmin } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { IsNull, type EntityManager } from 'typeorm';
import { WorkspaceEntity } from '../workspaces/workspace.entity.js';
import { TeamEntity } from './team.entity.js';

/** How every change of a team begins and ends: its row locked, so that changes of one team are serial; and the others told of its next revision. */
@Injectable()
export class TeamChanges {
  constructor(private readonly outbox: Outbox) {}

  /** The team, locked until the transaction ends. Throws `not_found` for one that is unknown or deleted; `what` is what the caller looked for. */
  async lock(manager: EntityManager, teamId: string, what = 'team'): Promise<TeamEntity> {
    const team = await manager.findOne(TeamEntity, {
      where: { id: teamId, deletedAt: IsNull() },
      lock: { mode: 'for_no_key_update' },
    });
    if (!team) throw notFound(what);
    return team;
  }

  /** As `lock`, for what gives to a team or changes it: a suspended team may only read and give back, and one that goes gets nothing new. */
  async lockForGrowth(manager: EntityManager, teamId: string, caller: Caller, what?: string): Promise<TeamEntity> {
    const team = await this.lock(manager, teamId, what);
    if (team.isSuspended && !isPlatformAdmin(caller)) {
      throw new AppError('team_suspended', 'The team is suspended: it may read, stop, unsubscribe and delete, nothing else.');
    }
    if (team.status === 'deleting') throw new AppError('conflict', 'The team is being deleted.');
    return team;
  }

  /** Writes a team that is locked, as its next revision, and tells of it. */
  async save(manager: EntityManager, team: TeamEntity, context?: CallContext): Promise<void> {
    await this.writeNextRevision(manager, team);
    await this.tell(manager, team, context);
  }

  /** Tells of a team as it is written. */
  async tell(manager: EntityManager, team: TeamEntity, context?: CallContext): Promise<void> {
    const workspaces = await manager.find(WorkspaceEntity, { where: { teamId: team.id }, order: { createdAt: 'ASC', id: 'ASC' } });
    await this.outbox.add(
      manager,
      teamChanged,
      {
        team_id: team.id,
        revision: team.revision,
        name: team.name,
        is_suspended: team.isSuspended,
        status: team.deletedAt ? 'deleted' : team.status,
        workspaces: workspaces.map(({ id, name }) => ({ id, name })),
      },
      context,
    );
  }

  /** Makes a change of one member the team's next revision and tells of it. `null`: no member any more. */
  async saveMember(
    manager: EntityManager,
    team: TeamEntity,
    member: { userId: string; role: TeamRole | null },
    context: CallContext,
  ): Promise<void> {
    await this.writeNextRevision(manager, team);
    await this.tellMember(manager, team, member, context);
  }

  async tellMember(
    manager: EntityManager,
    { id, revision }: TeamEntity,
    { userId, role }: { userId: string; role: TeamRole | null },
    context: CallContext,
  ): Promise<void> {
    await this.outbox.add(manager, membershipChanged, { team_id: id, revision, user_id: userId, role }, context);
  }

  private async writeNextRevision(manager: EntityManager, team: TeamEntity): Promise<void> {
    team.revision += 1;
    await manager.update(TeamEntity, { id: team.id }, team);
  }
}
