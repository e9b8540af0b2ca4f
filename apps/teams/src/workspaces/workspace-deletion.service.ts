import { type CallContext, type Nothing } from '@atoll/contracts';
import { workspaceDeletionRequested, type WorkspacePath } from '@atoll/contracts/teams';
import { databaseNowMs, newId, Statements, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requirePermissionNow } from '../members/caller-now.js';
import { TeamsSettings } from '../teams-settings.js';
import { HolderAnswers } from '../teams/holder-answers.js';
import { TeamChanges } from '../changes/team-changes.js';
import { findWorkspace, teamOfWorkspace } from './find-workspace.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';

/** How long after its patience a deletion may take to be concluded; then another may begin. */
const concludingMs = 1_000;
/**
 * How long after that it may still be concluded. Holders take nothing new for a minute after their answers (`closeTo`).
 */
const lateAfterMs = 15_000;

type Attempt = Pick<WorkspaceEntity, 'id' | 'teamId'> & { deletionAttemptId: string };

/**
 * Deletes a workspace in two steps, since other services may hold something in it: each is asked, and whoever answers
 * that it holds nothing takes nothing new into it for a while; then it is deleted, or stays. An attempt that nobody
 * concludes ends with its deadline.
 */
@Injectable()
export class WorkspaceDeletionService {
  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly answers: HolderAnswers,
    private readonly outbox: Outbox,
    private readonly settings: TeamsSettings,
  ) {}

  async delete({ workspace_id }: WorkspacePath, context: CallContext): Promise<Nothing> {
    const teamId = await teamOfWorkspace(this.statements, workspace_id, context);
    const attempt = { id: workspace_id, teamId, deletionAttemptId: newId() };
    await this.writers.run(teamId, context, (manager) => this.begin(manager, attempt, context));
    await this.answers.wait(attempt.deletionAttemptId, context);
    const objection = await this.writers.run(teamId, context, (manager) => this.conclude(manager, attempt, context));
    if (objection) throw objection;
    return {};
  }

  private async begin(
    manager: EntityManager,
    { id, teamId, deletionAttemptId }: Attempt,
    context: CallContext,
  ): Promise<void> {
    const { revision } = await this.changes.lock(manager, teamId, 'workspace');
    await requirePermissionNow(manager, context.caller, teamId, 'manageTeam', 'workspace');
    const { isDefault, deletionAttemptId: abandoned, deletionDeadline } = await findWorkspace(manager, teamId, id);
    if (isDefault)
      throw new AppError('conflict', 'The default workspace cannot be deleted; it is deleted with its team.');
    if (deletionDeadline && deletionDeadline.getTime() > (await databaseNowMs(manager)))
      throw new AppError('conflict', 'The workspace is already being deleted.');
    if (abandoned) await this.answers.forget(manager, abandoned);
    const patienceMs = this.settings.deletionPatienceMs + concludingMs;
    await manager.query(
      `UPDATE workspace SET deletion_attempt_id = $2, deletion_deadline = clock_timestamp() + $3 * interval '1 millisecond' WHERE id = $1`,
      [id, deletionAttemptId, patienceMs],
    );
    if (!this.answers.areAsked) return;
    const request = { team_id: teamId, revision, attempt_id: deletionAttemptId, workspace_id: id };
    await this.outbox.add(manager, workspaceDeletionRequested, request, context);
  }

  private async conclude(
    manager: EntityManager,
    attempt: Attempt,
    context: CallContext,
  ): Promise<AppError | undefined> {
    const { id, teamId, deletionAttemptId } = attempt;
    const team = await this.changes.lock(manager, teamId, 'workspace');
    const objection =
      (await this.lateness(manager, attempt)) ??
      (await this.answers.objection(manager, deletionAttemptId, 'workspace'));
    await this.answers.forget(manager, deletionAttemptId);
    if (objection) {
      await manager.update(WorkspaceEntity, attempt, { deletionAttemptId: null, deletionDeadline: null });
      await this.answers.callOff(manager, team, deletionAttemptId, context);
      return objection;
    }
    const workspace = await manager.findOneBy(WorkspaceEntity, attempt);
    if (!workspace) return this.answers.unanswered('workspace');
    await manager.delete(WorkspaceEntity, attempt);
    await this.changes.saveWorkspace(manager, team, { id, name: workspace.name, is_deleted: true }, context);
    return undefined;
  }

  /**
   * A holder stays true to its answer for a while only: what comes later, as from a process that was frozen, is too
   * late.
   */
  private async lateness(manager: EntityManager, { id, deletionAttemptId }: Attempt): Promise<AppError | undefined> {
    const late = await manager.query<object[]>(
      `SELECT FROM workspace WHERE id = $1 AND deletion_attempt_id = $2
         AND deletion_deadline < clock_timestamp() - interval '${lateAfterMs} milliseconds'`,
      [id, deletionAttemptId],
    );
    return late.length > 0 ? this.answers.unanswered('workspace') : undefined;
  }
}
