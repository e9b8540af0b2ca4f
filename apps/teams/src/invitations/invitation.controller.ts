import { type CallContext, type Nothing, type TeamPath } from '@atoll/contracts';
import {
  invitations,
  type InvitationList,
  type InvitationPath,
  type ListInvitations,
  type SentInvitation,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { InvitationsService } from './invitation.service.js';

@Controller()
export class InvitationsController implements Handlers<typeof invitations> {
  constructor(private readonly invitations: InvitationsService) {}

  @Handle(invitations.list)
  list(input: ListInvitations, context: CallContext): Promise<InvitationList> {
    return this.invitations.list(input, context);
  }

  @Handle(invitations.resend)
  resend(input: InvitationPath, context: CallContext): Promise<SentInvitation> {
    return this.invitations.resend(input, context);
  }

  @Handle(invitations.revoke)
  revoke(input: InvitationPath, context: CallContext): Promise<Nothing> {
    return this.invitations.revoke(input, context);
  }

  @Handle(invitations.accept)
  accept(input: TeamPath, context: CallContext): Promise<Nothing> {
    return this.invitations.accept(input, context);
  }
}
