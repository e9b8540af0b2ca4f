import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiBody, ApiTags } from '@nestjs/swagger';
import { Nothing, TeamPath, type CallContext } from '@atoll/contracts';
import { members, teamBatches, teams } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { ChangesCaller } from '../../answers/answers.js';
import { Context } from '../../requests/call-context.js';
import { OldAnswers } from '../http/old-answers.js';
import { withFaults } from '../http/old-faults.js';
import { mostPerPage } from '../http/old-pages.js';
import {
  inList,
  Invitations,
  namedMember,
  OldMemberPage,
  oldMemberOf,
  OldMemberPath,
  OldMembersQuery,
  RoleChange,
  StatusChange,
} from './old-members.js';
import { OldNewMember } from './old-teams.js';

@ApiTags('Members')
@Controller('team/:team_id')
export class OldMembersController {
  constructor(private readonly rpc: Rpc) {}

  @Get('members')
  @OldAnswers(OldMemberPage, 'List the members of a team', 'Returns the members that match. Any member may read them.')
  async listTeamMembers(
    @Param() path: TeamPath,
    @Query() query: OldMembersQuery,
    @Context() context: CallContext,
  ): Promise<OldMemberPage> {
    const { page = 0, itemsPerPage = 10, search = '' } = query;
    const asked = { ...path, page, limit: Math.min(itemsPerPage, mostPerPage), search };
    const { data, pagination } = await this.rpc.call(teamBatches.findMembers, asked, context);
    return { members: data.map((member) => oldMemberOf(path.team_id, member)), count: pagination.total };
  }

  @Post('invite')
  @ChangesCaller()
  @ApiBody({ type: OldNewMember, isArray: true })
  @OldAnswers(Nothing, 'Invite people to a team', 'Invites all of them or none. Requires team_owner or team_admin.')
  async invite(
    @Param() path: TeamPath,
    @Body() people: Invitations,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    const invited = { ...path, members: people.members.map(namedMember) };
    await this.rpc.call(teamBatches.addMembers, invited, context).catch((error: unknown) => {
      throw withFaults(error, inList);
    });
    return {};
  }

  @Post('member/:user_id/role')
  @ChangesCaller()
  @OldAnswers(
    Nothing,
    'Change the role of a member',
    'A team_owner, who is shown as a team_admin, stays one where that is sent. Requires team_owner or team_admin.',
  )
  async changeRole(
    @Param() path: OldMemberPath,
    @Body() { role_id: role }: RoleChange,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    await this.rpc.call(teamBatches.changeRole, { ...path, role }, context);
    return {};
  }

  @Post('member/:user_id/status')
  @ChangesCaller()
  @OldAnswers(
    Nothing,
    'Change the state of a member',
    'removed ends the membership and its keys. Requires team_owner or team_admin.',
  )
  async changeStatus(
    @Param() path: OldMemberPath,
    @Body() { status }: StatusChange,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    if (status === 'removed') await this.rpc.call(members.remove, path, context);
    else await this.rpc.call(teams.get, { team_id: path.team_id }, context);
    return {};
  }
}
