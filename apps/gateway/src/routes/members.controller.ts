import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, PageFromZero, TeamPath, type CallContext } from '@atoll/contracts';
import {
  ChangeRoleBody,
  KeyTerms,
  MemberPage,
  MemberPath,
  NewMember,
  TeamMember,
  members,
} from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Members')
@Controller('team/:team_id/members')
export class MembersController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(
    MemberPage,
    0,
    'List the members of a team',
    'Returns the members with their roles. API keys are masked.',
  )
  listTeamMembers(
    @Param() path: TeamPath,
    @Query() page: PageFromZero,
    @Context() context: CallContext,
  ): Promise<MemberPage> {
    return this.rpc.call(members.list, { ...path, ...page }, context);
  }

  @Post()
  @ChangesCaller()
  @Answers(
    201,
    TeamMember,
    'Add a member to a team',
    'Issues an API key to the team for the new member, which is shown only in this response. Requires team_owner or team_admin.',
  )
  addTeamMember(
    @Param() path: TeamPath,
    @Body() body: NewMember,
    @Context() context: CallContext,
  ): Promise<TeamMember> {
    return this.rpc.call(members.add, { ...path, ...body }, context);
  }

  @Put(':user_id')
  @ChangesCaller()
  @Answers(
    200,
    TeamMember,
    'Change the role of a member',
    'Only a team_owner may make or change a team_owner. A member whose password was set by a link that a team_admin was shown cannot become one. Requires team_owner or team_admin.',
  )
  changeTeamMemberRole(
    @Param() path: MemberPath,
    @Body() body: ChangeRoleBody,
    @Context() context: CallContext,
  ): Promise<TeamMember> {
    return this.rpc.call(members.changeRole, { ...path, ...body }, context);
  }

  @Delete(':user_id')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Remove a member from a team',
    'Revokes the API keys of the member to the team. The last team_owner cannot be removed, but whoever is invited as one may decline the invitation. Requires team_owner or team_admin.',
  )
  removeTeamMember(@Param() path: MemberPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(members.remove, path, context);
  }

  @Post(':user_id/api-key')
  @ChangesCaller()
  @Answers(
    201,
    TeamMember,
    'Issue an API key of a member',
    'Issues an API key to the team, or replaces the one that the member has. The key is shown only in this response. Members may replace their own.',
  )
  issueTeamMemberKey(
    @Param() path: MemberPath,
    @Body() body: KeyTerms,
    @Context() context: CallContext,
  ): Promise<TeamMember> {
    return this.rpc.call(members.issueKey, { ...path, ...body }, context);
  }

  @Delete(':user_id/api-key')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Revoke the API keys of a member',
    'Revokes all API keys of the member to the team. Members may revoke their own.',
  )
  revokeTeamMemberKeys(@Param() path: MemberPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(members.revokeKey, path, context);
  }
}
