import { notFound, requirePermission, type CallContext } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';
import { WorkspaceEntity } from './workspace.entity.js';

/** A workspace, for a manager of its team. Refused in the same words where there is none, and where it is another team's. */
export async function findWorkspace(manager: EntityManager, id: string, { caller }: CallContext): Promise<WorkspaceEntity> {
  const workspace = await manager.findOneBy(WorkspaceEntity, { id });
  if (!workspace) throw notFound('workspace');
  requirePermission(caller, workspace.teamId, 'manageTeam', 'workspace');
  return workspace;
}
