import { isPlatformAdmin, notFound, pageWindow, requirePermission, type CallContext } from '@atoll/contracts';
import {
  type CreateWorkspace,
  type ListWorkspaces,
  type RenameWorkspace,
  type Workspace,
  type WorkspacePage,
} from '@atoll/contracts/teams';
import { newId, readPage, Statements, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { Not, type EntityManager } from 'typeorm';
import { requirePermissionNow } from '../members/caller-now.js';
import { TeamChanges } from '../changes/team-changes.js';
import { findWorkspace, teamOfWorkspace } from './find-workspace.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';
import { TokenBuckets, type BucketRate } from '../tries/token-buckets.js';

/** Each Team shows its workspaces, all of them. */
const mostWorkspaces = 1000;
const refillMs = 432_000;
/** Rows of deleted workspaces stay in other services: bills are about them, and late usage may name them. */
const creations: BucketRate = { refillMs, capacityMs: mostWorkspaces * refillMs };

@Injectable()
export class WorkspacesService {
  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly buckets: TokenBuckets,
  ) {}

  async list({ team_id, ...asked }: ListWorkspaces, { caller }: CallContext): Promise<WorkspacePage> {
    requirePermission(caller, team_id, 'readTeam');
    const { page, limit, offset } = pageWindow(asked, 0);
    const { total, rows } = await readPage<Workspace>(this.statements, {
      from: 'workspace WHERE team_id = $1 AND EXISTS (SELECT FROM team WHERE team.id = $1 AND deleted_at IS NULL)',
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: 'id, name, team_id',
      values: [team_id, limit, offset],
    });
    // The default workspace cannot be deleted; it is deleted with its team.
    if (total === 0) throw notFound('team');
    return { data: rows, pagination: { page, limit, total } };
  }

  async create({ team_id, name }: CreateWorkspace, context: CallContext): Promise<Workspace> {
    requirePermission(context.caller, team_id, 'manageTeam');
    return this.writers.once(team_id, context, async (manager) => {
      const team = await this.changes.lockForGrowth(manager, team_id, context.caller);
      await requirePermissionNow(manager, context.caller, team_id, 'manageTeam');
      if (await manager.existsBy(WorkspaceEntity, { teamId: team_id, name })) throw nameTaken();
      if ((await manager.countBy(WorkspaceEntity, { teamId: team_id })) >= mostWorkspaces) {
        throw new AppError('conflict', `A team has at most ${mostWorkspaces} workspaces.`);
      }
      if (!isPlatformAdmin(context.caller)) await this.takeCreation(manager, team_id);
      const workspace = { id: newId(), teamId: team_id, name };
      await manager.insert(WorkspaceEntity, workspace);
      await this.changes.saveWorkspace(manager, team, { id: workspace.id, name, is_deleted: false }, context);
      return { id: workspace.id, name, team_id };
    });
  }

  async rename({ workspace_id, name }: RenameWorkspace, context: CallContext): Promise<Workspace> {
    const teamId = await teamOfWorkspace(this.statements, workspace_id, context);
    return this.writers.run(teamId, context, async (manager) => {
      const team = await this.changes.lockForGrowth(manager, teamId, context.caller, 'workspace');
      await requirePermissionNow(manager, context.caller, teamId, 'manageTeam', 'workspace');
      const workspace = await findWorkspace(manager, teamId, workspace_id);
      if (workspace.name !== name) {
        if (await manager.existsBy(WorkspaceEntity, { teamId, name, id: Not(workspace_id) })) throw nameTaken();
        await manager.update(WorkspaceEntity, { id: workspace_id }, { name });
        await this.changes.saveWorkspace(manager, team, { id: workspace_id, name, is_deleted: false }, context);
      }
      return { id: workspace_id, name, team_id: teamId };
    });
  }

  private async takeCreation(manager: EntityManager, teamId: string): Promise<void> {
    if (await this.buckets.takeWithin(manager, [teamId, 'workspaces'], creations)) return;
    throw new AppError(
      'too_many_requests',
      `A team creates at most ${mostWorkspaces} workspaces at once, and one in ${refillMs / 60_000} minutes after that.`,
      { retryAfterSeconds: refillMs / 1000 },
    );
  }
}

function nameTaken(): AppError {
  return new AppError('conflict', 'The team already has a workspace with this name.');
}
