import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  workspaces,
  type CreateWorkspace,
  type ListWorkspaces,
  type RenameWorkspace,
  type Workspace,
  type WorkspacePage,
  type WorkspacePath,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { WorkspaceDeletionService } from './workspace-deletion.service.js';
import { WorkspacesService } from './workspace.service.js';

@Controller()
export class WorkspacesController implements Handlers<typeof workspaces> {
  constructor(
    private readonly workspaces: WorkspacesService,
    private readonly deletion: WorkspaceDeletionService,
  ) {}

  @Handle(workspaces.list)
  list(input: ListWorkspaces, context: CallContext): Promise<WorkspacePage> {
    return this.workspaces.list(input, context);
  }

  @Handle(workspaces.create)
  create(input: CreateWorkspace, context: CallContext): Promise<Workspace> {
    return this.workspaces.create(input, context);
  }

  @Handle(workspaces.rename)
  rename(input: RenameWorkspace, context: CallContext): Promise<Workspace> {
    return this.workspaces.rename(input, context);
  }

  @Handle(workspaces.delete)
  delete(input: WorkspacePath, context: CallContext): Promise<Nothing> {
    return this.deletion.delete(input, context);
  }
}
