import { Body, Controller, Delete, Get, Param, Post, Put, Query, Res } from '@nestjs/common';
import { ApiResponse, ApiTags } from '@nestjs/swagger';
import { Nothing, TeamPath, type CallContext } from '@atoll/contracts';
import {
  CreateTeam,
  DeleteTeamQuery,
  DeletingTeam,
  ListTeams,
  ResourceOverview,
  Team,
  TeamPage,
  UpdateTeamBody,
  teams,
} from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply } from 'fastify';
import { Answers, AnswersJson, AnswersPage, ChangesCaller } from '../answers/answers.js';
import { LargeAnswers, passedOn, type PassedOn } from '../answers/large-answers.js';
import { Context } from '../requests/call-context.js';
import { ConfigureRoute } from '../http/route-config.js';

@ApiTags('Teams')
@Controller('team')
export class TeamsController {
  constructor(
    private readonly rpc: Rpc,
    private readonly answers: LargeAnswers,
  ) {}

  @Post()
  @ChangesCaller()
  @Answers(
    201,
    Team,
    'Create a team',
    'Creates a team with a default workspace. The caller becomes its team_owner, and is a member of at most 200 teams; a user creates at most 200 at once, and one in 7.2 minutes after that. Each API key is shown only in this response.',
  )
  createTeam(@Body() body: CreateTeam, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.create, body, context);
  }

  @Get()
  @AnswersPage(
    TeamPage,
    0,
    'List teams',
    'Returns the teams of the caller; all teams for a platform_admin. With `search`, only matching teams; `total` counts them.',
  )
  listTeams(
    @Query() query: ListTeams,
    @Context() context: CallContext,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PassedOn> {
    return this.answers.page(teams.list, query, context, reply);
  }

  @Get(':team_id')
  @AnswersJson(Team, 'Get a team', 'Returns a team with its members, policy and workspaces. API keys are masked.')
  async getTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<PassedOn> {
    // Most teams are short: only a long one is refused where much is unread.
    return passedOn(await this.rpc.callForJson(teams.get, path, context));
  }

  @Get(':team_id/resource-overview')
  @Answers(
    200,
    ResourceOverview,
    'Get the resources of a team',
    'Returns what the team holds now, by region. If a service does not respond, the answer is 503 and names it. Any member of the team may read it.',
  )
  getTeamResources(@Param() path: TeamPath, @Context() context: CallContext): Promise<ResourceOverview> {
    return this.rpc.call(teams.resourceOverview, path, context);
  }

  @Put(':team_id')
  @Answers(
    200,
    Team,
    'Update a team',
    'Changes the name, the description, or whether sessions need a second factor. Requires team_owner or team_admin.',
  )
  updateTeam(@Param() path: TeamPath, @Body() body: UpdateTeamBody, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.update, { ...path, ...body }, context);
  }

  @Delete(':team_id')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Delete a team',
    'Deletes a team with every key to it. A team that holds something is refused with 409, or with `force=true` emptied first: ' +
      '202 if that takes longer than 8 s; it continues by itself, and the same request shows its progress. Requires team_owner.',
  )
  @ApiResponse({ status: 202, description: 'Accepted', type: DeletingTeam })
  @ConfigureRoute({ deadlineMs: 10_000 })
  async deleteTeam(
    @Param() path: TeamPath,
    @Query() query: DeleteTeamQuery,
    @Context() context: CallContext,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { deleting } = await this.rpc.call(teams.delete, { ...path, ...query }, context);
    await (deleting ? reply.status(202).send(deleting) : reply.status(204).send());
  }

  @Post(':team_id/suspend')
  @Answers(
    200,
    Team,
    'Suspend a team',
    'A suspended team may read, stop, unsubscribe and delete, nothing else; what runs continues and is billed. Requires platform_admin.',
  )
  suspendTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.suspend, path, context);
  }

  @Post(':team_id/unsuspend')
  @Answers(200, Team, 'Unsuspend a team', 'Ends the suspension. Requires platform_admin.')
  unsuspendTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<Team> {
    return this.rpc.call(teams.unsuspend, path, context);
  }
}
