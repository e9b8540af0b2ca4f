import { IntersectionType } from '@nestjs/swagger';
import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Email, Flag, Instant, ListOf, Nested, OneOf, QueryFlag, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { PageFromZero, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';
import { ResourceOverview } from './resource-overview.js';
import { SentInvitation } from './sent-invitation.js';
import { TeamHolding } from './team-holding.js';

const name = { max: 100, example: 'Research', description: 'Name of the team.' };
const description = {
  min: 0,
  max: 1000,
  multiline: true,
  example: 'Protein folding',
  description: 'Purpose of the team.',
};

const requireSecondFactor =
  'Whether sessions need a second factor to act in the team. ' +
  'API keys of users who joined it while it required none are not affected.';

export class NewMember {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({
    max: 100,
    example: 'Ada',
    description: 'Name of the person, shown to the team until the person has accepted.',
  })
  name!: string;

  @OneOf('TeamRole', teamRoles, { example: 'member' })
  role!: TeamRole;
}

export class CreateTeam {
  @Text(name)
  name!: string;

  @Text({ ...description, optional: true })
  description?: string;

  @ListOf(() => NewMember, {
    max: 100,
    optional: true,
    description:
      'Members besides the caller, who becomes team_owner in any case. ' +
      'Where a platform_admin names a team_owner, only those named are members.',
  })
  members?: NewMember[];
}

export class UpdateTeamBody {
  @Text({ ...name, optional: true })
  name?: string;

  @Text({ ...description, optional: true })
  description?: string;

  @Flag({ optional: true, description: requireSecondFactor })
  require_second_factor?: boolean;
}

export class UpdateTeam extends IntersectionType(TeamPath, UpdateTeamBody) {}

export const memberStatuses = ['invited', 'active'] as const;
export type MemberStatus = (typeof memberStatuses)[number];

export class TeamMember {
  @Uuid()
  user_id!: string;

  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({ max: 100, example: 'Ada' })
  name!: string;

  @OneOf('TeamRole', teamRoles, { example: 'team_owner' })
  role!: TeamRole;

  @OneOf('MemberStatus', memberStatuses, {
    example: 'active',
    description:
      'State of the membership: `invited` until the person has accepted. Until then `name` is the one that was sent, ' +
      'and nothing shows whether the platform knew the e-mail address.',
  })
  status!: MemberStatus;

  @Text({
    max: 64,
    nullable: true,
    description:
      'API key: in full in the response that creates it, masked everywhere else; null for a member without one.',
    example: 'atl_ab12…wxyz',
  })
  api_key!: string | null;

  @Flag({ description: 'Whether the member has a live API key.' })
  api_token!: boolean;

  @Instant({ nullable: true, description: 'Instant at which the API key expires; null for a member without one.' })
  expiry_date!: string | null;

  @Text({
    min: 0,
    max: 4096,
    description: 'Comma-separated addresses and CIDRs that may use the API key; empty for any.',
    example: '',
  })
  ip_whitelist!: string;

  @Nested(() => SentInvitation, { optional: true, description: 'Only in the response that adds the member.' })
  invitation?: SentInvitation;
}

export class PolicyInfo {
  @Uuid()
  policy_id!: string;

  @Text({ max: 100, example: 'default' })
  policy_name!: string;
}

export class WorkspaceName {
  @Uuid()
  id!: string;

  @Text({ max: 100, example: 'default' })
  name!: string;
}

const teamStatuses = ['active', 'deleting'] as const;
export type TeamStatus = (typeof teamStatuses)[number];

export class Team {
  @Uuid()
  id!: string;

  @Text(name)
  name!: string;

  @Text(description)
  description!: string;

  @Instant()
  created_at!: string;

  @OneOf('TeamStatus', teamStatuses, { example: 'active' })
  status!: TeamStatus;

  @Flag({ description: 'Whether the team is suspended: it may read, stop, unsubscribe and delete, nothing else.' })
  is_suspended!: boolean;

  @Flag({ description: requireSecondFactor })
  require_second_factor!: boolean;

  @Flag()
  has_pool_subscription!: boolean;

  @ListOf(() => TeamMember, { max: 100_000 })
  members!: TeamMember[];

  @Nested(() => PolicyInfo)
  policy_info!: PolicyInfo;

  @ListOf(() => WorkspaceName, { max: 100_000 })
  workspaces!: WorkspaceName[];
}

export class TeamPage extends PageOf(() => Team) {}

class TeamSearch {
  @Text({
    min: 0,
    max: 200,
    optional: true,
    example: 'research',
    description:
      'Part of the name of a team, in upper or lower case, or the whole id of one; `%` and `_` stand for themselves. All if empty.',
  })
  search?: string;
}

export class ListTeams extends IntersectionType(PageFromZero, TeamSearch) {}

export class DeleteTeamQuery {
  @QueryFlag({
    optional: true,
    description: 'Whether the resources of the team are ended first; otherwise they cause a 409.',
  })
  force?: string;
}

export class DeleteTeam extends IntersectionType(TeamPath, DeleteTeamQuery) {}

/** A team whose resources are being ended. The deletion continues in the background until the team is gone. */
export class DeletingTeam {
  @Uuid()
  id!: string;

  @OneOf('DeletionStatus', ['deleting'])
  status!: 'deleting';

  @ListOf(() => TeamHolding, { max: 100 })
  remaining!: TeamHolding[];
}

export class TeamDeletion {
  @Nested(() => DeletingTeam, { nullable: true, description: 'null once the team is gone.' })
  deleting!: DeletingTeam | null;
}

export const teams = contract('teams', {
  create: operation(CreateTeam, Team),
  list: operation(ListTeams, TeamPage),
  get: operation(TeamPath, Team),
  update: operation(UpdateTeam, Team),
  suspend: operation(TeamPath, Team),
  unsuspend: operation(TeamPath, Team),
  delete: operation(DeleteTeam, TeamDeletion),
  /** Throws `unavailable`, naming the service, where one of those that are asked does not answer. */
  resourceOverview: operation(TeamPath, ResourceOverview),
});
