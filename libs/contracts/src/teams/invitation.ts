import { IntersectionType } from '@nestjs/swagger';
import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Email, Instant, OneOf, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { ListOrPageOf, Nothing, PageFromOneOrAll } from '../page.js';
import { SentInvitation } from './sent-invitation.js';
import { TeamPath } from '../team-path.js';

export class InvitationPath extends TeamPath {
  @Uuid({ description: 'Id of the invitation.' })
  invitation_id!: string;
}

/** A membership that the person has not accepted yet. */
export class Invitation {
  @Uuid()
  id!: string;

  @Uuid()
  user_id!: string;

  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({ max: 100, example: 'Ada' })
  name!: string;

  @OneOf('TeamRole', teamRoles, { example: 'member' })
  role!: TeamRole;

  @Instant()
  created_at!: string;

  @Instant({
    nullable: true,
    description: 'Instant at which the link expires; null where there is none that can be used.',
  })
  expires_at!: string | null;
}

export class ListInvitations extends IntersectionType(TeamPath, PageFromOneOrAll) {}

export class InvitationList extends ListOrPageOf(() => Invitation, { max: 1000 }) {}

export const invitations = contract('teams.invitations', {
  list: operation(ListInvitations, InvitationList),
  resend: operation(InvitationPath, SentInvitation),
  revoke: operation(InvitationPath, Nothing),
  accept: operation(TeamPath, Nothing),
});
