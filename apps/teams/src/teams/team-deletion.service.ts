import { setTimeout as delay } from 'node:timers/promises';
import {
  credentialsChanged,
  requirePermission,
  teamDeletionAnswered,
  teamDeletionRequested,
  type CallContext,
  type Nothing,
  type TeamDeletionAnswered,
  type TeamPath,
} from '@atoll/contracts';
import { newId, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { OnEvent, Outbox, type EventDelivery } from '@atoll/events';
import { remainingMs, Rpc } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { DataSource, LessThan, type EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { requirePermissionNow } from '../members/caller-now.js';
import { requireOwner } from '../members/member-rules.js';
import { MembershipEntity } from '../members/membership.entity.js';
import { TeamsSettings } from '../teams-settings.js';
import { TeamCapacityEntity } from './team-capacity.entity.js';
import { TeamChanges } from './team-changes.js';
import { DeletionAnswerEntity } from './team-deletion.entity.js';
import { TeamEntity } from './team.entity.js';

const pollMs = 25;
/** Of the caller's patience, what concluding the deletion may take. */
const concludingMs = 500;
/** How long after its patience a deletion may still be concluded by who began it; then anybody may call it off. */
const abandonedAfterMs = 30_000;
const deleteTheTeam = 'delete the team';

type Conclusion = { verdict: 'deleted'; userIds: string[] } | { verdict: 'held'; holds: string } | { verdict: 'unanswered' };

/**
 * Deletes a team in two steps, since other services may hold something of it: marked `deleting`, so that nothing new begins, while each is asked;
 * then deleted, or active again. Whatever happens between the steps, `callOffAbandoned` makes it active again.
 */
@Injectable()
export class TeamDeletionService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly changes: TeamChanges,
    private readonly apiKeys: ApiKeysService,
    private readonly outbox: Outbox,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  async delete({ team_id }: TeamPath, context: CallContext): Promise<Nothing> {
    requirePermission(context.caller, team_id, 'readTeam');
    requireOwner(context.caller, team_id, deleteTheTeam);
    const attemptId = newId();
    await this.transactions.run((manager) => this.begin(manager, team_id, attemptId, context));
    await this.answersOf(attemptId, context);
    const conclusion = await this.transactions.run((manager) => this.conclude(manager, team_id, attemptId, context));
    if (conclusion.verdict === 'held') throw new AppError('conflict', `The team still holds something: ${conclusion.holds}.`);
    if (conclusion.verdict === 'unanswered') {
      throw new AppError('unavailable', 'Whether the team still holds something could not be found out.', { retryAfterSeconds: 5 });
    }
    for (const user_id of conclusion.userIds) this.rpc.publish(credentialsChanged, { user_id });
    return {};
  }

  @OnEvent(teamDeletionAnswered, { consumer: 'team-deletion' })
  async onAnswered({ team_id, attempt_id, holder, holds }: TeamDeletionAnswered, { manager }: EventDelivery): Promise<void> {
    const isUnderWay = await manager.existsBy(TeamEntity, { id: team_id, deletionAttemptId: attempt_id });
    if (isUnderWay) await manager.upsert(DeletionAnswerEntity, { attemptId: attempt_id, holder, holds }, ['attemptId', 'holder']);
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
    if (this.settings.deletionHolders.length > 0) await this.outbox.add(manager, teamDeletionRequested, request, context);
  }

  /** Waits until every holder has answered, or patience ends. Which replica takes in an answer does not matter: it lies in the database. */
  private async answersOf(attemptId: string, context: CallContext): Promise<void> {
    const patienceMs = Math.min(this.settings.deletionPatienceMs, remainingMs(context) - concludingMs);
    const until = Date.now() + patienceMs;
    while ((await this.missing(this.dataSource.manager, attemptId)).length > 0 && Date.now() < until) await delay(pollMs);
  }

  private async missing(manager: EntityManager, attemptId: string): Promise<string[]> {
    const { deletionHolders } = this.settings;
    if (deletionHolders.length === 0) return [];
    const answers = await manager.findBy(DeletionAnswerEntity, { attemptId });
    return deletionHolders.filter((holder) => !answers.some((answer) => answer.holder === holder));
  }

  private async conclude(manager: EntityManager, teamId: string, attemptId: string, context: CallContext): Promise<Conclusion> {
    const team = await this.changes.lock(manager, teamId);
    if (team.deletionAttemptId !== attemptId) return { verdict: 'unanswered' };
    const missing = await this.missing(manager, attemptId);
    const answers = await manager.find(DeletionAnswerEntity, { where: { attemptId }, order: { holder: 'ASC' } });
    const holds = answers.flatMap((answer) => answer.holds ?? []).join('; ');
    if (holds || missing.length > 0) {
      await this.callOff(manager, team, attemptId, context);
      return holds ? { verdict: 'held', holds } : { verdict: 'unanswered' };
    }
    team.deletedAt = new Date();
    await this.finish(manager, team, attemptId, context);
    await this.apiKeys.revokeTeam(manager, teamId);
    const members = await manager.findBy(MembershipEntity, { teamId });
    return { verdict: 'deleted', userIds: members.map(({ userId }) => userId) };
  }

  private async callOff(manager: EntityManager, team: TeamEntity, attemptId: string, context?: CallContext): Promise<void> {
    team.status = 'active';
    await this.finish(manager, team, attemptId, context);
  }

  private async finish(manager: EntityManager, team: TeamEntity, attemptId: string, context?: CallContext): Promise<void> {
    team.deletionAttemptId = null;
    team.deletionDeadline = null;
    await manager.delete(DeletionAnswerEntity, { attemptId });
    await this.changes.save(manager, team, context);
  }
}
