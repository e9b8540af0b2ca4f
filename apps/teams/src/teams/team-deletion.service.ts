import { requirePermission, type CallContext, type TeamPath } from '@atoll/contracts';
import { credentialsChanged, teamDeletionRequested, type TeamDeletion } from '@atoll/contracts/teams';
import { newId, Transactions, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Rpc } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requirePermissionNow } from '../members/caller-now.js';
import { requireOwner } from '../members/member-rules.js';
import { TeamsSettings } from '../teams-settings.js';
import { HolderAnswers } from './holder-answers.js';
import { TeamCapacityEntity } from '../model/team-capacity.entity.js';
import { TeamChanges } from '../changes/team-changes.js';
import { TeamRemoval } from './team-removal.js';
import { TeamEntity } from '../model/team.entity.js';

/**
 * How long after its patience a deletion may still be concluded by the process that began it; then any replica calls it
 * off.
 */
const abandonedAfterMs = 30_000;
const deleteTheTeam = 'delete the team';

type Conclusion = { userIds: string[] } | { objection: AppError };

/**
 * Deletes a team in two steps, since other services may hold something of it: marked `deleting`, so that nothing new
 * begins, while each is asked; then deleted, or active again. Whatever happens between the steps, upkeep makes it
 * active again.
 */
@Injectable()
export class TeamDeletionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly removal: TeamRemoval,
    private readonly answers: HolderAnswers,
    private readonly outbox: Outbox,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  async delete({ team_id }: TeamPath, context: CallContext): Promise<TeamDeletion> {
    const attemptId = newId();
    requireDeletion(context, team_id);
    await this.writers.run(team_id, context, (manager) => this.begin(manager, team_id, attemptId, context));
    await this.answers.wait(attemptId, context);
    const conclusion = await this.writers.run(team_id, context, (manager) =>
      this.conclude(manager, team_id, attemptId, context),
    );
    if ('objection' in conclusion) throw conclusion.objection;
    for (const user_id of conclusion.userIds) this.rpc.publish(credentialsChanged, { user_id });
    return { deleting: null };
  }

  /** Makes a team active again if the process that was deleting it has died. */
  async callOffAbandoned(teamId: string): Promise<void> {
    await this.transactions.run(async (manager) => {
      const team = await lockDue(manager, teamId, 'deletion_deadline');
      if (team?.deletionAttemptId) await this.callOff(manager, team, team.deletionAttemptId);
    });
  }

  private async begin(manager: EntityManager, teamId: string, attemptId: string, context: CallContext): Promise<void> {
    const team = await this.changes.lock(manager, teamId);
    await requireDeletionNow(manager, context, teamId);
    if (team.status === 'deleting') throw new AppError('conflict', 'The team is already being deleted.');
    if (await manager.existsBy(TeamCapacityEntity, { teamId, hasPoolSubscription: true })) {
      throw new AppError('conflict', 'The team still holds something: a GPU pool subscription.');
    }
    Object.assign(team, { status: 'deleting', deletionAttemptId: attemptId });
    await this.changes.save(manager, team, context);
    await manager.query(
      `UPDATE team SET deletion_deadline = clock_timestamp() + $2 * interval '1 millisecond' WHERE id = $1`,
      [teamId, this.settings.deletionPatienceMs + abandonedAfterMs],
    );
    const request = { team_id: teamId, revision: team.revision, attempt_id: attemptId };
    if (this.answers.areAsked) await this.outbox.add(manager, teamDeletionRequested, request, context);
  }

  private async conclude(
    manager: EntityManager,
    teamId: string,
    attemptId: string,
    context: CallContext,
  ): Promise<Conclusion> {
    const team = await this.changes.lock(manager, teamId);
    if (team.deletionAttemptId !== attemptId) return { objection: this.answers.unanswered('team') };
    const objection = await this.answers.objection(manager, attemptId, 'team');
    if (!objection) return { userIds: await this.removal.remove(manager, team, context) };
    await this.callOff(manager, team, attemptId, context);
    return { objection };
  }

  private async callOff(
    manager: EntityManager,
    team: TeamEntity,
    attemptId: string,
    context?: CallContext,
  ): Promise<void> {
    team.status = 'active';
    await this.answers.callOff(manager, team, attemptId, context);
    await this.removal.close(manager, team, context);
  }
}

/** What came with the call says whether this caller may delete the team. */
export function requireDeletion({ caller }: CallContext, teamId: string): void {
  requirePermission(caller, teamId, 'readTeam');
  requireOwner(caller, teamId, deleteTheTeam);
}

/** As `requireDeletion`, by the role of now, under the team's lock. */
export async function requireDeletionNow(
  manager: EntityManager,
  { caller }: CallContext,
  teamId: string,
): Promise<void> {
  requireOwner(await requirePermissionNow(manager, caller, teamId, 'readTeam'), teamId, deleteTheTeam);
}

/** The team, locked, if upkeep still has to look at its deletion and no other replica does. */
export async function lockDue(
  manager: EntityManager,
  teamId: string,
  column: 'deletion_deadline' | 'forced_deletion_due_at',
): Promise<TeamEntity | null> {
  const due = await manager.query<object[]>(
    `SELECT FROM team WHERE id = $1 AND ${column} < (SELECT clock_timestamp()) FOR NO KEY UPDATE SKIP LOCKED`,
    [teamId],
  );
  return due.length > 0 ? manager.findOneBy(TeamEntity, { id: teamId }) : null;
}
