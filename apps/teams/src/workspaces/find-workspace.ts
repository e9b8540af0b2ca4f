import { notFound, requirePermission, type CallContext } from '@atoll/contracts';
import type { Statements } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import { WorkspaceEntity } from '../model/workspace.entity.js';

/**
 * The team of a workspace, for a manager of that team. Where there is no such workspace, and where it is another
 * team's, the same statement is executed and the same words refuse.
 */
export async function teamOfWorkspace(statements: Statements, id: string, { caller }: CallContext): Promise<string> {
  const [row] = await statements.query<{ team_id: string }>('SELECT team_id FROM workspace WHERE id = $1', [id]);
  if (!row) throw notFound('workspace');
  requirePermission(caller, row.team_id, 'manageTeam', 'workspace');
  return row.team_id;
}

/** A workspace of a team that is locked, as it is now. */
export async function findWorkspace(manager: EntityManager, teamId: string, id: string): Promise<WorkspaceEntity> {
  const workspace = await manager.findOneBy(WorkspaceEntity, { id, teamId });
  if (!workspace) throw notFound('workspace');
  return workspace;
}
