import {
  credentialsChanged,
  requirePermission,
  teamDeletionRequested,
  type CallContext,
  type Nothing,
  type TeamPath,
} from '@atoll/contracts';
import { newId, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Rpc } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { DataSource, LessThan, type EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { Writers } from '../database/writers.js';
import { requirePermissionNow } from '../members/caller-now.js';
import { requireOwner } from '../members/member-rules.js';
import { MembershipEntity } from '../members/membership.entity.js';
import { TeamsSettings } from '../teams-settings.js';
import { HolderAnswers } from './holder-answers.js';
import { TeamCapacityEntity } from './team-capacity.entity.js';
import { TeamChanges } from './team-changes.js';
import { TeamEntity } from './team.entity.js';

/** How long after its patience a deletion may still be concluded by who began it; then anybody may call it off. */
const abandonedAfterMs = 30_000;
const deleteTheTeam = 'delete the team';

type Conclusion = { userIds: string[] } | { objection: AppError };

/**
 * Deletes a team in two steps, since other services may hold something of it: marked `deleting`, so that nothing new begins, while each is asked;
 * then deleted, or active again. Whatever happens between the steps, `callOffAbandoned` makes it active again.
 */
@Injectable()
export class TeamDeletionService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly apiKeys: ApiKeysService,
    private readonly answers: HolderAnswers,
    private readonly outbox: Outbox,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  async delete({ team_id }: TeamPath, context: CallContext): Promise<Nothing> {
    requirePermission(context.caller, team_id, 'readTeam');
    requireOwner(context.caller, team_id, deleteTheTeam);
    const attemptId = newId();
    await this.writers.run(team_id, context, (manager) => this.begin(manager, team_id, attemptId, context));
    await this.answers.wait(attemptId, context);
    const conclusion = await this.writers.run(team_id, context, (manager) => this.conclude(manager, team_id, attemptId, context));
    if ('objection' in conclusion) throw conclusion.objection;
    for (const user_id of conclusion.userIds) this.rpc.publish(credentialsChanged, { user_id });
    return {};
  }

  /** Makes teams active again whose deletion nobody concludes any more: the process that began it has died. */
  async callOffAbandoned(): Promise<void> {
    const abandoned = { deletionDeadline: LessThan(new Date()) };
    for (const { id } of await this.dataSource.manager.find(TeamEntity, { select: { id: true }, where: abandoned })) {
      await this.transactions.run(async (manager) => {
        const team = await manager.findOne(TeamEntity, { where: { id, ...abandoned }, lock: { mode: 'for_no_key_update' } });
        if (team?.deletionAttemptId) await this.callOff(manager, team, team.deletionAttemptId);
      });
    }
  }

  private async begin(manager: EntityManager, teamId: string, attemptId: string, context: CallContext): Promise<void> {
    const team = await this.changes.lock(manager, teamId);
    requireOwner(await requirePermissionNow(manager, context.caller, teamId, 'readTeam'), teamId, deleteTheTeam);
    if (team.status === 'deleting') throw new AppError('conflict', 'The team is being deleted already.');
    if (await manager.existsBy(TeamCapacityEntity, { teamId, hasPoolSubscription: true })) {
      throw new AppError('conflict', 'The team still holds something: a GPU pool subscription.');
    }
    team.status = 'deleting';
    team.deletionAttemptId = attemptId;
    team.deletionDeadline = new Date(Date.now() + this.settings.deletionPatienceMs + abandonedAfterMs);
    await this.changes.save(manager, team, context);
    const request = { team_id: teamId, revision: team.revision, attempt_id: attemptId };
    if (this.answers.areAsked) await this.outbox.add(manager, teamDeletionRequested, request, context);
  }

  private async conclude(manager: EntityManager, teamId: string, attemptId: string, context: CallContext): Promise<Conclusion> {
    const team = await this.changes.lock(manager, teamId);
    if (team.deletionAttemptId !== attemptId) return { objection: this.answers.unanswered('team') };
    const objection = await this.answers.objection(manager, attemptId, 'team');
    if (objection) {
      await this.callOff(manager, team, attemptId, context);
      return { objection };
    }
    team.deletedAt = new Date();
    await this.finish(manager, team, attemptId, context);
    await this.apiKeys.revokeTeam(manager, teamId);
    const members = await manager.findBy(MembershipEntity, { teamId });
    return { userIds: members.map(({ userId }) => userId) };
  }

  private async callOff(manager: EntityManager, team: TeamEntity, attemptId: string, context?: CallContext): Promise<void> {
    team.status = 'active';
    await this.answers.callOff(manager, team, attemptId, context);
    await this.finish(manager, team, attemptId, context);
  }

  private async finish(manager: EntityManager, team: TeamEntity, attemptId: string, context?: CallContext): Promise<void> {
    team.deletionAttemptId = null;
    team.deletionDeadline = null;
    await this.answers.forget(manager, attemptId);
    await this.changes.save(manager, team, context);
  }
}
