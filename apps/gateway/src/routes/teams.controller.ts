import { Body, Controller, Delete, Get, Param, Post, Put, Query, Res } from '@nestjs/common';
import { ApiResponse, ApiTags } from '@nestjs/swagger';
import {
  CreateTeam,
  DeleteTeamQuery,
  DeletingTeam,
  Nothing,
  PageFromZero,
  ResourceOverview,
  Team,
  TeamPage,
  TeamPath,
  UpdateTeamBody,
  teams,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply } from 'fastify';
import { Answers, AnswersPage, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';
import { ConfigureRoute } from '../requests/route-config.js';

@ApiTags('Teams')
@Controller('team')
export class TeamsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @ChangesCaller()
  @Answers(201, Team, 'Creates a team, with a default workspace. The caller becomes its team_owner; each key is shown in this answer only.')
  create(@Body() body: CreateTeam, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.create, body, context);
  }

  @Get()
  @AnswersPage(TeamPage, 0, 'Lists the teams of the caller; all teams for a platform_admin.')
  list(@Query() page: PageFromZero, @Context() context: CallContext): Promise<TeamPage> {
    return this.rpc.call(teams.list, page, context);
  }

  @Get(':team_id')
  @Answers(200, Team, 'Shows a team with its members, policy and workspaces. Keys are masked.')
  get(@Param() path: TeamPath, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.get, path, context);
  }

  @Get(':team_id/resource-overview')
  @Answers(
    200,
    ResourceOverview,
    'Shows what a team holds now, by region. 503 names the service where one of those that are asked does not answer.',
  )
  resourceOverview(@Param() path: TeamPath, @Context() context: CallContext): Promise<ResourceOverview> {
    return this.rpc.call(teams.resourceOverview, path, context);
  }

  @Put(':team_id')
  @Answers(200, Team, 'Changes the name or the description.')
  update(@Param() path: TeamPath, @Body() body: UpdateTeamBody, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.update, { ...path, ...body }, context);
  }

  @Delete(':team_id')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Deletes a team, with every key to it. A team that holds something is refused with 409, or with `force=true` emptied first: ' +
      '202 if that takes longer than 8 s; it goes on by itself, and the same request shows how far it is. For a team_owner.',
  )
  @ApiResponse({ status: 202, description: 'Accepted. What the team holds is being ended.', type: DeletingTeam })
  @ConfigureRoute({ deadlineMs: 10_000 })
  async delete(
    @Param() path: TeamPath,
    @Query() query: DeleteTeamQuery,
    @Context() context: CallContext,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { deleting } = await this.rpc.call(teams.delete, { ...path, ...query }, context);
    await (deleting ? reply.status(202).send(deleting) : reply.status(204).send());
  }

  @Post(':team_id/suspend')
  @Answers(200, Team, 'Suspends a team: it may read, stop, unsubscribe and delete, nothing else. For a platform_admin.')
  suspend(@Param() path: TeamPath, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.suspend, path, context);
  }

  @Post(':team_id/unsuspend')
  @Answers(200, Team, 'Lifts the suspension. For a platform_admin.')
  unsuspend(@Param() path: TeamPath, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.unsuspend, path, context);
  }
}
