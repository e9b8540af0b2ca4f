import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import {
  ChangeRoleBody,
  KeyTerms,
  MemberPage,
  MemberPath,
  NewMember,
  Nothing,
  PageFromZero,
  TeamMember,
  TeamPath,
  members,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Members')
@Controller('team/:team_id/members')
export class MembersController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersPage(MemberPage, 0, 'Lists the members of a team. Keys are masked.')
  list(@Param() path: TeamPath, @Query() page: PageFromZero, @Context() context: CallContext): Promise<MemberPage> {
    return this.rpc.call(members.list, { ...path, ...page }, context);
  }

  @Post()
  @ChangesCaller()
  @Answers(201, TeamMember, 'Adds a member, with a key to the team that is shown in this answer only.')
  add(@Param() path: TeamPath, @Body() body: NewMember, @Context() context: CallContext): Promise<TeamMember> {
    return this.rpc.call(members.add, { ...path, ...body }, context);
  }

  @Put(':user_id')
  @ChangesCaller()
  @Answers(200, TeamMember, 'Gives a member another role.')
  changeRole(@Param() path: MemberPath, @Body() body: ChangeRoleBody, @Context() context: CallContext): Promise<TeamMember> {
    return this.rpc.call(members.changeRole, { ...path, ...body }, context);
  }

  @Delete(':user_id')
  @ChangesCaller()
  @Answers(204, Nothing, 'Removes a member with their keys to the team. The last owner cannot be removed.')
  remove(@Param() path: MemberPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(members.remove, path, context);
  }

  @Post(':user_id/api-key')
  @ChangesCaller()
  @Answers(201, TeamMember, "Issues a member's key to the team, or rotates it. The key is shown in this answer only.")
  issueKey(@Param() path: MemberPath, @Body() body: KeyTerms, @Context() context: CallContext): Promise<TeamMember> {
    return this.rpc.call(members.issueKey, { ...path, ...body }, context);
  }

  @Delete(':user_id/api-key')
  @ChangesCaller()
  @Answers(204, Nothing, "Revokes a member's keys to the team.")
  revokeKey(@Param() path: MemberPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(members.revokeKey, path, context);
  }
}
