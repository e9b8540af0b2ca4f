import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  CreateWorkspace,
  ListWorkspaces,
  Nothing,
  RenameWorkspaceBody,
  Workspace,
  WorkspacePage,
  WorkspacePath,
  workspaces,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Workspaces')
@Controller('workspace')
export class WorkspacesController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(WorkspacePage, 0, 'Lists the workspaces of a team.')
  list(@Query() query: ListWorkspaces, @Context() context: CallContext): Promise<WorkspacePage> {
    return this.rpc.call(workspaces.list, query, context);
  }

  @Post()
  @Answers(201, Workspace, 'Creates a workspace in a team.')
  create(@Body() body: CreateWorkspace, @Context() context: CallContext): Promise<Workspace> {
    return this.rpc.call(workspaces.create, body, context);
  }

  @Put(':workspace_id')
  @Answers(200, Workspace, 'Renames a workspace.')
  rename(@Param() path: WorkspacePath, @Body() body: RenameWorkspaceBody, @Context() context: CallContext): Promise<Workspace> {
    return this.rpc.call(workspaces.rename, { ...path, ...body }, context);
  }

  @Delete(':workspace_id')
  @Answers(204, Nothing, 'Deletes a workspace that is not in use and not the default one.')
  delete(@Param() path: WorkspacePath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(workspaces.delete, path, context);
  }
}
