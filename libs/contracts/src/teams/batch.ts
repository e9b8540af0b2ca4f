import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Text, Uuid, Uuids, WholeNumber } from '../fields.js';
import { PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';
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
    description: 'Number of the page, counted from 0; the last one with entries where it is past it.',
  })
  page!: number;

  @WholeNumber({ min: 1, max: 1000, description: 'Entries per page, 1 to 1000.' })
  limit!: number;

  @Text({ min: 0, max: 300, optional: true, description: 'Part of the name or of the e-mail address, in either case.' })
  search?: string;
}

/** A member with what a list of people shows. Of the account of a person who has not accepted, nothing. */
export class FoundMember extends TeamMember {
  @Instant()
  created_at!: string;

  @Text({ max: 64, example: 'UTC' })
  timezone!: string;

  @Flag({ description: 'Whether the log-in of the person takes a second factor; false to a caller who may not manage the team.' })
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

/** What the compatibility mount needs of many objects at once, or as one step. */
export const teamBatches = contract('teams.batches', {
  create: operation(CreateTeamWithPolicy, Team),
  /** The next 1000 teams that are not deleted, by id. Empty after the last. For a platform_admin. */
  names: operation(TeamsNamedAfter, NamedTeams),
  findMembers: operation(FindMembers, FoundMembers),
  /** All of them or none. */
  addMembers: operation(AddMembers, AddedMembers),
  /** Those of the caller's teams alone; of all teams for a platform_admin. Nothing is said about the rest. */
  workspaces: operation(FindWorkspaces, FoundWorkspaces),
  /** As `teams.delete` with force; a team that was deleted before is no error to a platform_admin. */
  end: operation(TeamPath, TeamDeletion),
});
