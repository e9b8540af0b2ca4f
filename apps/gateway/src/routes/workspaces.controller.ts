import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import {
  CreateWorkspace,
  ListWorkspaces,
  RenameWorkspaceBody,
  Workspace,
  WorkspacePage,
  WorkspacePath,
  workspaces,
} from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Workspaces')
@Controller('workspace')
export class WorkspacesController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(
    WorkspacePage,
    0,
    'List the workspaces of a team',
    'Returns the workspaces in the order of their creation, the default one first.',
  )
  listWorkspaces(@Query() query: ListWorkspaces, @Context() context: CallContext): Promise<WorkspacePage> {
    return this.rpc.call(workspaces.list, query, context);
  }

  @Post()
  @Answers(
    201,
    Workspace,
    'Create a workspace',
    'Creates a workspace in a team. A team has at most 1000 workspaces, and creates at most 1000 at once and one in 7.2 minutes after that. Requires team_owner or team_admin.',
  )
  createWorkspace(@Body() body: CreateWorkspace, @Context() context: CallContext): Promise<Workspace> {
    return this.rpc.call(workspaces.create, body, context);
  }

  @Put(':workspace_id')
  @Answers(
    200,
    Workspace,
    'Rename a workspace',
    'The new name must be unique in the team. Requires team_owner or team_admin.',
  )
  renameWorkspace(
    @Param() path: WorkspacePath,
    @Body() body: RenameWorkspaceBody,
    @Context() context: CallContext,
  ): Promise<Workspace> {
    return this.rpc.call(workspaces.rename, { ...path, ...body }, context);
  }

  @Delete(':workspace_id')
  @Answers(
    204,
    Nothing,
    'Delete a workspace',
    'The workspace must not be in use, nor be the default one. Requires team_owner or team_admin.',
  )
  deleteWorkspace(@Param() path: WorkspacePath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(workspaces.delete, path, context);
  }
}
