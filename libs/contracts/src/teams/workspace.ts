import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing, PageFromZero, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';

export class WorkspacePath {
  @Uuid()
  workspace_id!: string;
}

export class ListWorkspaces extends IntersectionType(TeamPath, PageFromZero) {}

export class CreateWorkspace extends TeamPath {
  @Text({ max: 100, example: 'training', description: 'Name of the workspace, unique in its team.' })
  name!: string;
}

export class RenameWorkspaceBody {
  @Text({ max: 100, example: 'training', description: 'Name of the workspace, unique in its team.' })
  name!: string;
}

export class RenameWorkspace extends IntersectionType(WorkspacePath, RenameWorkspaceBody) {}

export class Workspace {
  @Uuid()
  id!: string;

  @Text({ max: 100, example: 'training' })
  name!: string;

  @Uuid()
  team_id!: string;
}

export class WorkspacePage extends PageOf(() => Workspace) {}

export const workspaces = contract('teams.workspaces', {
  list: operation(ListWorkspaces, WorkspacePage),
  create: operation(CreateWorkspace, Workspace),
  rename: operation(RenameWorkspace, Workspace),
  delete: operation(WorkspacePath, Nothing),
});
