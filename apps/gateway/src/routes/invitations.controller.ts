import { Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, PageFromOneOrAll, TeamPath, type CallContext } from '@atoll/contracts';
import { InvitationList, InvitationPath, invitations, SentInvitation } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Members')
@Controller('team/:team_id/invitations')
export class InvitationsController {
  constructor(private readonly rpc: Rpc) {}

  @Get()
  @AnswersAllOrPage(
    InvitationList,
    'List the invitations of a team',
    'Returns the members who have not accepted yet, the earliest first: all of them unless `limit` is sent. Requires team_owner or team_admin.',
  )
  listInvitations(
    @Param() path: TeamPath,
    @Query() page: PageFromOneOrAll,
    @Context() context: CallContext,
  ): Promise<InvitationList> {
    return this.rpc.call(invitations.list, { ...path, ...page }, context);
  }

  @Post('accept')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Accept the invitation to a team',
    'Makes the caller an active member, of at most 200 teams. By link it is done without a log-in.',
  )
  acceptInvitation(@Param() path: TeamPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(invitations.accept, path, context);
  }

  @Post(':invitation_id/resend')
  @Answers(
    200,
    SentInvitation,
    'Send an invitation again',
    'Creates a link that replaces the earlier one. It is sent by mail, or shown only in this response if the platform sends no mail.',
  )
  resendInvitation(@Param() path: InvitationPath, @Context() context: CallContext): Promise<SentInvitation> {
    return this.rpc.call(invitations.resend, path, context);
  }

  @Delete(':invitation_id')
  @Answers(
    204,
    Nothing,
    'Revoke an invitation',
    'Removes the member who has not accepted, with the API key. Requires team_owner or team_admin.',
  )
  revokeInvitation(@Param() path: InvitationPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(invitations.revoke, path, context);
  }
}
