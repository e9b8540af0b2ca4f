import { IntersectionType } from '@nestjs/swagger';
import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, Nested, OneOf, Uuid, WholeNumber } from '../fields.js';
import { IpWhitelist } from '../ip-whitelist.js';
import { Nothing, PageFromZero, Pagination } from '../page.js';
import { NewMember, TeamMember, TeamPath } from './team.js';

export class MemberPath extends TeamPath {
  @Uuid()
  user_id!: string;
}

export class ListMembers extends IntersectionType(TeamPath, PageFromZero) {}

export class MemberPage {
  @ListOf(() => TeamMember, { max: 100 })
  data!: TeamMember[];

  @Nested(() => Pagination)
  pagination!: Pagination;
}

export class AddMember extends IntersectionType(TeamPath, NewMember) {}

export class ChangeRoleBody {
  @OneOf(teamRoles, {
    example: 'team_admin',
    description:
      "Becoming team_owner ends those of the member's keys to this team that neither a team_owner nor the operator issued: whoever issues a key has seen it.",
  })
  role!: TeamRole;
}

export class ChangeRole extends IntersectionType(MemberPath, ChangeRoleBody) {}

export class KeyTerms {
  @Instant({
    optional: true,
    description:
      'In the future, at most 365 days ahead; 90 days from now if left out. ' +
      'Set by a team_owner or a team_admin for somebody else, it holds for the keys too that this member issues after it.',
  })
  expiry_date?: string;

  @IpWhitelist({
    optional: true,
    description:
      'Comma-separated IPv4/IPv6 addresses or CIDRs; empty allows any. Left out, it is that of the key that is replaced. ' +
      'Of a key to a team that has one, only a team_owner or a team_admin may change it.',
  })
  ip_whitelist?: string;

  @WholeNumber({
    min: 0,
    max: 604_800,
    optional: true,
    description:
      'How long the replaced key still works, in seconds; never past its own expiry. 0 if left out. It issues no keys meanwhile.',
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
