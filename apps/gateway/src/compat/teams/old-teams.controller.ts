import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, TeamPath, Uuid, type CallContext } from '@atoll/contracts';
import { imagePolicies, teamBatches, teams, workspaces, type NewMember } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { ChangesCaller } from '../../answers/answers.js';
import { Context } from '../../requests/call-context.js';
import { ConfigureRoute } from '../../http/route-config.js';
import { OldAnswers, ShownList } from '../http/old-answers.js';
import { OldPage, pageOrLast } from '../http/old-pages.js';
import { NamedOne } from '../roles-and-policies/policies.js';
import { namedMember } from './old-members.js';
import { imagePolicyOf, OldNewTeam, OldResources, OldTeam, OldTeamChange, oldTeamOf } from './old-teams.js';

class OldWorkspacesQuery extends OldPage {
  @Uuid({ description: 'Id of the team.' })
  teamId!: string;
}

class OldWorkspaces {
  @ShownList(() => NamedOne, 'Workspaces of the team, the default one first.')
  workspaces!: NamedOne[];
}

@ApiTags('Teams')
@Controller()
export class OldTeamsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('team')
  @ChangesCaller()
  @OldAnswers(
    OldTeam,
    'Create a team',
    'Creates a team with its members and image policy, or nothing. Keys are shown only in this response.',
  )
  async createTeam(@Body() body: OldNewTeam, @Context() context: CallContext): Promise<OldTeam> {
    const policy = imagePolicyOf(body);
    const members = (body.members ?? []).map(namedMember);
    const created = await this.rpc.call(
      teamBatches.create,
      {
        name: body.name,
        description: body.description ?? '',
        members: isOperator(context) ? withOwner(members) : members,
        ...(policy !== undefined && { image_policy_id: policy }),
      },
      context,
    );
    return oldTeamOf(created);
  }

  @Get('team/:team_id')
  @OldAnswers(OldTeam, 'Get a team', 'Returns a team. Any member may read it.')
  async getTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<OldTeam> {
    return oldTeamOf(await this.rpc.call(teams.get, path, context));
  }

  @Put('team/:team_id')
  @OldAnswers(OldTeam, 'Update a team', 'Changes what is sent; an image policy only by a platform_admin.')
  async updateTeam(
    @Param() path: TeamPath,
    @Body() body: OldTeamChange,
    @Context() context: CallContext,
  ): Promise<OldTeam> {
    const policy = imagePolicyOf(body);
    if (policy !== undefined) await this.rpc.call(imagePolicies.assign, { id: policy, ...path }, context);
    const change = {
      ...(body.name != null && { name: body.name }),
      ...(body.description != null && { description: body.description }),
    };
    const isChanged = Object.keys(change).length > 0;
    return oldTeamOf(
      await (isChanged
        ? this.rpc.call(teams.update, { ...path, ...change }, context)
        : this.rpc.call(teams.get, path, context)),
    );
  }

  @Delete('team/:team_id')
  @ChangesCaller()
  @ConfigureRoute({ deadlineMs: 10_000 })
  @OldAnswers(
    Nothing,
    'Delete a team',
    'Ends what the team holds, then deletes it. 409 if that takes longer than 8 s: it continues by itself, and the same request tells when it is done.',
  )
  async deleteTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<Nothing> {
    const { deleting } = await this.rpc.call(teamBatches.end, path, context);
    if (!deleting) return {};
    const left = deleting.remaining.map(({ kind, count }) =>
      count === null ? `what ${kind} holds` : `${count} ${kind}`,
    );
    throw new AppError(
      'conflict',
      `The team is being deleted and still holds: ${left.join(', ') || 'something'}. Send the request again.`,
    );
  }

  @Post('team/:team_id/suspend')
  @OldAnswers(OldTeam, 'Suspend a team', 'What runs continues and is billed. Requires platform_admin.')
  async suspendTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<OldTeam> {
    return oldTeamOf(await this.rpc.call(teams.suspend, path, context));
  }

  @Post('team/:team_id/unsuspend')
  @OldAnswers(OldTeam, 'Unsuspend a team', 'Ends the suspension. Requires platform_admin.')
  async unsuspendTeam(@Param() path: TeamPath, @Context() context: CallContext): Promise<OldTeam> {
    return oldTeamOf(await this.rpc.call(teams.unsuspend, path, context));
  }

  @Get('team/:team_id/resource-overview')
  @OldAnswers(OldResources, 'Get the resources of a team', 'Returns what the team holds now. Any member may read it.')
  async getTeamResources(@Param() path: TeamPath, @Context() context: CallContext): Promise<OldResources> {
    const { total } = await this.rpc.call(teams.resourceOverview, path, context);
    const holding = (used: number) => ({ used, available: -1 });
    return {
      cores: holding(0),
      memory: holding(0),
      gpus: holding(total.vgpus),
      storage: holding(0),
      ephemeral_storage: holding(0),
      shared_storage: holding(total.storage_in_gb),
    };
  }

  @Get('workspace')
  @OldAnswers(
    OldWorkspaces,
    'List the workspaces of a team',
    'Returns a page, the default workspace first. Any member may read them.',
  )
  async listWorkspaces(@Query() query: OldWorkspacesQuery, @Context() context: CallContext): Promise<OldWorkspaces> {
    const { data } = await pageOrLast(
      (page, limit) => this.rpc.call(workspaces.list, { team_id: query.teamId, page, limit }, context),
      ({ id }) => id,
      query,
    );
    return { workspaces: data.map(({ id, name }) => ({ id, name })) };
  }
}

function isOperator({ caller }: CallContext): boolean {
  return caller.kind === 'user' && caller.platformAdmin;
}

/** The operator creates teams for customers: the first who may manage one owns it. */
function withOwner(members: NewMember[]): NewMember[] {
  const admin = members.findIndex(({ role }) => role === 'team_admin');
  return members.map((member, at): NewMember =>
    at === Math.max(0, admin) ? { ...member, role: 'team_owner' } : member,
  );
}
