import { workspaceDeletionRequested, type CallContext, type Nothing, type WorkspacePath } from '@atoll/contracts';
import { newId, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requirePermissionNow } from '../members/caller-now.js';
import { TeamsSettings } from '../teams-settings.js';
import { HolderAnswers } from '../teams/holder-answers.js';
import { TeamChanges } from '../teams/team-changes.js';
import { findWorkspace } from './find-workspace.js';
import { WorkspaceEntity } from './workspace.entity.js';

/** How long after its patience a deletion may take to be concluded; then another may begin. */
const concludingMs = 1_000;

/**
 * Deletes a workspace in two steps, since other services may hold something in it: each is asked, and whoever answers that it holds nothing takes nothing new
 * into it for a while; then it is deleted, or stays. An attempt that nobody concludes ends with its deadline.
 */
@Injectable()
export class WorkspaceDeletionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly changes: TeamChanges,
    private readonly answers: HolderAnswers,
    private readonly outbox: Outbox,
    private readonly settings: TeamsSettings,
  ) {}

  async delete({ workspace_id }: WorkspacePath, context: CallContext): Promise<Nothing> {
    const attemptId = newId();
    await this.transactions.run((manager) => this.begin(manager, workspace_id, attemptId, context));
    await this.answers.wait(attemptId, context);
    const objection = await this.transactions.run((manager) => this.conclude(manager, workspace_id, attemptId, context));
    if (objection) throw objection;
    return {};
  }

  private async begin(manager: EntityManager, id: string, attemptId: string, context: CallContext): Promise<void> {
    const { teamId: team_id } = await findWorkspace(manager, id, context);
    const { revision } = await this.changes.lock(manager, team_id, 'workspace');
    await requirePermissionNow(manager, context.caller, team_id, 'manageTeam', 'workspace');
    // As it is now that its team is locked.
    const { isDefault, deletionAttemptId: abandoned, deletionDeadline } = await findWorkspace(manager, id, context);
    if (isDefault) throw new AppError('conflict', 'The default workspace lives as long as its team.');
    if (deletionDeadline && deletionDeadline.getTime() > Date.now())
      throw new AppError('conflict', 'The workspace is being deleted already.');
    if (abandoned) await this.answers.forget(manager, abandoned);
    const patience = {
      deletionAttemptId: attemptId,
      deletionDeadline: new Date(Date.now() + this.settings.deletionPatienceMs + concludingMs),
    };
    await manager.update(WorkspaceEntity, { id }, patience);
    if (!this.answers.areAsked) return;
    await this.outbox.add(manager, workspaceDeletionRequested, { team_id, revision, attempt_id: attemptId, workspace_id: id }, context);
  }

  private async conclude(manager: EntityManager, id: string, attemptId: string, context: CallContext): Promise<AppError | undefined> {
    const { teamId } = await findWorkspace(manager, id, context);
    const team = await this.changes.lock(manager, teamId, 'workspace');
    const objection = await this.answers.objection(manager, attemptId, 'workspace');
    await this.answers.forget(manager, attemptId);
    const attempt = { id, deletionAttemptId: attemptId };
    if (objection) {
      await manager.update(WorkspaceEntity, attempt, { deletionAttemptId: null, deletionDeadline: null });
      await this.answers.callOff(manager, team, attemptId, context);
      return objection;
    }
    const { affected } = await manager.delete(WorkspaceEntity, attempt);
    if (!affected) return this.answers.unanswered('workspace');
    await this.changes.save(manager, team, context);
    return undefined;
  }
}
