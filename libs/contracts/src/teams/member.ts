import { IntersectionType } from '@nestjs/swagger';
import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Instant, OneOf, WholeNumber } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { IpWhitelist } from '../ip-whitelist.js';
import { Nothing, PageFromZero, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';
import { NewMember, TeamMember } from './team.js';

export class MemberPath extends TeamPath {
  @Uuid()
  user_id!: string;
}

export class ListMembers extends IntersectionType(TeamPath, PageFromZero) {}

export class MemberPage extends PageOf(() => TeamMember) {}

export class AddMember extends IntersectionType(TeamPath, NewMember) {}

export class ChangeRoleBody {
  @OneOf('TeamRole', teamRoles, {
    example: 'team_admin',
    description:
      'Role in the team. A member who becomes team_owner loses the keys to the team and the invitation links that ' +
      'neither a team_owner nor the operator issued, since the issuer has seen them.',
  })
  role!: TeamRole;
}

export class ChangeRole extends IntersectionType(MemberPath, ChangeRoleBody) {}

export class KeyTerms {
  @Instant({
    optional: true,
    description:
      'Instant at which the key expires, at most 365 days ahead; 90 days from now if left out, or never if the key ' +
      'replaces the key of the operator that is not limited to a team and never expires. ' +
      'If a team_owner or a team_admin sets it for another member, it also limits the keys that this member issues later.',
  })
  expiry_date?: string;

  @IpWhitelist({
    optional: true,
    description:
      'Comma-separated IPv4/IPv6 addresses or CIDRs that may use the key; empty for any, that of the replaced key if left ' +
      'out. Only a team_owner or a team_admin may change the list of a key to a team.',
  })
  ip_whitelist?: string;

  @WholeNumber({
    min: 0,
    max: 604_800,
    optional: true,
    description:
      'Seconds for which the replaced key still works, 0 to 604800, never past its own expiry; 0 if left out. ' +
      'It issues no keys meanwhile. At most 20 replaced keys of a holder work at once.',
    example: 3600,
  })
  grace_seconds?: number;
}

export class IssueMemberKey extends IntersectionType(MemberPath, KeyTerms) {}

export const members = contract('teams.members', {
  list: operation(ListMembers, MemberPage),
  add: operation(AddMember, TeamMember),
  changeRole: operation(ChangeRole, TeamMember),
  remove: operation(MemberPath, Nothing),
  issueKey: operation(IssueMemberKey, TeamMember),
  revokeKey: operation(MemberPath, Nothing),
});
