import { IntersectionType } from '@nestjs/swagger';
import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Email, Flag, Instant, ListOf, OneOf, Text, WholeNumber } from '../fields.js';
import { Uuid, Uuids } from '../id-fields.js';
import { Nothing, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';
import { ChangeRole } from './member.js';
import { newPassword, OneTimeLink } from './password.js';
import { CreateTeam, NewMember, Team, TeamDeletion, TeamMember, WorkspaceName } from './team.js';

/** As `CreateTeam`; with an image policy only by a platform_admin. */
export class CreateTeamWithPolicy extends CreateTeam {
  @Uuid({ optional: true, description: 'Id of the image policy; the default one if left out.' })
  image_policy_id?: string;
}

export class TeamsNamedAfter {
  @Uuid({ optional: true, description: 'Id of the last team of the previous page; left out for the first page.' })
  team_id?: string;
}

export class NamedTeam {
  @Uuid()
  id!: string;

  @Text({ max: 100, example: 'Research' })
  name!: string;

  @Uuid({ description: 'Id of the image policy of the team.' })
  policy_id!: string;
}

export class NamedTeams {
  @ListOf(() => NamedTeam, { max: 1000 })
  teams!: NamedTeam[];
}

export class FindMembers extends TeamPath {
  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Number of the page, counted from 0. Past the last page with entries, that page is returned.',
  })
  page!: number;

  @WholeNumber({ min: 1, max: 1000, description: 'Entries per page, 1 to 1000.' })
  limit!: number;

  @Text({ min: 0, max: 300, optional: true, description: 'Part of the name or of the e-mail address, in either case.' })
  search?: string;
}

/** A member as shown in a list of people. Shows nothing of the account of a person who has not accepted yet. */
export class FoundMember extends TeamMember {
  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'Instant at which the person has accepted; null while they are invited.' })
  joined_at!: string | null;

  @Text({ max: 64, example: 'UTC' })
  timezone!: string;

  @Flag({
    description:
      'Whether the log-in of the person needs a second factor; false to a caller who may not manage the team.',
  })
  second_factor!: boolean;
}

export class FoundMembers extends PageOf(() => FoundMember, { max: 1000 }) {}

class NewMembers {
  @ListOf(() => NewMember, { min: 1, max: 100 })
  members!: NewMember[];
}

export class AddMembers extends IntersectionType(TeamPath, NewMembers) {}

export class AddedMembers {
  @ListOf(() => TeamMember, { max: 100 })
  members!: TeamMember[];
}

export class FindWorkspaces {
  @Uuids({ max: 1000 })
  workspace_ids!: string[];
}

class FoundWorkspace extends WorkspaceName {
  @Uuid()
  team_id!: string;

  @Text({ max: 100, example: 'Research' })
  team_name!: string;
}

export class FoundWorkspaces {
  @ListOf(() => FoundWorkspace, { max: 1000 })
  workspaces!: FoundWorkspace[];
}

class Person {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({
    max: 100,
    optional: true,
    example: 'Ada',
    description: 'Name of a user who is new or gets a first password; ignored otherwise.',
  })
  name?: string;
}

export class WelcomeUser extends Person {
  @Uuid({ optional: true, description: 'Team that the user joins.' })
  team_id?: string;

  @OneOf('TeamRole', teamRoles, {
    optional: true,
    description: 'Role of a new member: member if left out. A member keeps the role.',
  })
  role?: TeamRole;

  @Text({
    ...newPassword,
    optional: true,
    description: 'First password; ignored if the user has one. The user joins the team with it.',
  })
  password?: string;

  @Flag({ optional: true, description: 'Whether the link goes by mail too, where the platform has a mail server.' })
  send_mail?: boolean;
}

export class WelcomedUser extends OneTimeLink {
  @Flag({ description: 'Whether the user has a password.' })
  has_password!: boolean;

  @Flag({ description: 'Whether the log-in of the user needs a second factor.' })
  has_second_factor!: boolean;
}

export class OnboardUser extends Person {
  @Text(newPassword)
  password!: string;
}

/** What the compatibility mount needs of many objects at once, or as one step. */
export const teamBatches = contract('teams.batches', {
  create: operation(CreateTeamWithPolicy, Team),
  /** The next 1000 teams that are not deleted, by id. Empty after the last. For a platform_admin. */
  names: operation(TeamsNamedAfter, NamedTeams),
  findMembers: operation(FindMembers, FoundMembers),
  /** All of them or none. */
  addMembers: operation(AddMembers, AddedMembers),
  /** As `members.changeRole`; a team_owner, who is shown as a team_admin, stays one where that is asked for. */
  changeRole: operation(ChangeRole, TeamMember),
  /** Those of the caller's teams alone; of all teams for a platform_admin. Nothing is said about the rest. */
  workspaces: operation(FindWorkspaces, FoundWorkspaces),
  /** As `teams.delete` with force; a team that was deleted before is no error to a platform_admin. */
  end: operation(TeamPath, TeamDeletion),
  /** Creates a one-time link for a user; creates the user and the membership if needed. Requires platform_admin. */
  welcome: operation(WelcomeUser, WelcomedUser),
  /** The first password of a user; `conflict` where there is one. For a platform_admin. */
  onboard: operation(OnboardUser, Nothing),
});
