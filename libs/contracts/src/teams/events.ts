import { teamRoles, type TeamRole } from '../caller.js';
import { event } from '../contract.js';
import { Flag, ListOf, Nested, OneOf, Revision, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { TeamHolding } from './team-holding.js';
import { WorkspaceName } from './team.js';

/**
 * Grows with every change of the team: of two facts about one team the greater revision holds, whatever the order they
 * come in.
 */
class TeamFact {
  @Uuid()
  team_id!: string;

  @Revision()
  revision!: number;
}

/** A team itself, as other services need it. */
export class TeamStanding {
  @Text({ max: 100 })
  name!: string;

  @Flag()
  is_suspended!: boolean;

  @OneOf('TeamState', ['active', 'deleting', 'deleted'])
  status!: 'active' | 'deleting' | 'deleted';

  @Uuid({ nullable: true, description: 'Id of the workspace for requests that name none.' })
  default_workspace_id!: string | null;
}

/** One workspace of a team. */
export class WorkspaceStanding extends WorkspaceName {
  @Flag()
  is_deleted!: boolean;
}

/** So that one update stays below 20 kB, whatever the team holds. */
export const maxWorkspacesPerUpdate = 100;

/**
 * The state of a team, of some of its workspaces, or of both, as of one revision. Of two statements about the same
 * team or the same workspace, the one with the greater revision holds: updates may come late, twice or in any order.
 */
export class TeamUpdate extends TeamFact {
  @Nested(() => TeamStanding, { optional: true })
  team?: TeamStanding;

  @ListOf(() => WorkspaceStanding, { max: maxWorkspacesPerUpdate })
  workspaces!: WorkspaceStanding[];

  @Flag({ description: 'Whether `workspaces` are all that the team had at this revision.' })
  is_complete!: boolean;
}
/**
 * A team was created, renamed, suspended, marked for deletion or deleted; or one of its workspaces was created,
 * renamed or deleted. Carries what changed and nothing else.
 */
export const teamUpdated = event('teams.team_updated', TeamUpdate);

/** A team with all its workspaces: what was published before `TeamUpdate`. */
export class TeamChanged extends TeamFact {
  @Text({ max: 100 })
  name!: string;

  @Flag()
  is_suspended!: boolean;

  @OneOf('TeamState', ['active', 'deleting', 'deleted'])
  status!: 'active' | 'deleting' | 'deleted';

  @ListOf(() => WorkspaceName, { max: 100_000, description: 'In the order of creation: the first is the default one.' })
  workspaces!: WorkspaceName[];
}
/** Published no more. Consumed, since streams and outboxes may hold some from before an upgrade. */
export const teamChanged = event('teams.team_changed', TeamChanged);

export class MembershipChanged extends TeamFact {
  @Uuid()
  user_id!: string;

  @OneOf('TeamRole', teamRoles, { nullable: true, description: 'null once the member is gone.' })
  role!: TeamRole | null;

  @Flag({
    optional: true,
    description:
      'Whether they have not accepted the invitation yet. Until then nothing of theirs, such as SSH keys, is shown to the team or used for it.',
  })
  is_invited?: boolean;

  @Flag({
    optional: true,
    description:
      'Whether the team required a second factor when they joined. Their SSH keys that were added without one then open none of its hosts.',
  })
  required_factor_at_join?: boolean;

  @Flag({
    optional: true,
    description: 'True where the person was no member before this change. A reader that has no row need not add one.',
  })
  had_not_joined?: boolean;
}
export const membershipChanged = event('teams.membership_changed', MembershipChanged);

export class TeamDeletionRequested extends TeamFact {
  @Uuid()
  attempt_id!: string;

  @Flag({
    optional: true,
    description: 'Whether services end what the team holds. Published again, with back-off, until nothing is left.',
  })
  force?: boolean;
}
/** The services that can hold something of a team or of a workspace. */
export const deletionHolders = ['gpuaas', 'pods'] as const;
/** Every service of `deletionHolders` answers with `teamDeletionAnswered`. */
export const teamDeletionRequested = event('teams.team_deletion_requested', TeamDeletionRequested);

export class WorkspaceDeletionRequested extends TeamDeletionRequested {
  @Uuid()
  workspace_id!: string;
}
/** Every service of `deletionHolders` answers with `teamDeletionAnswered` what the team holds in this workspace. */
export const workspaceDeletionRequested = event('teams.workspace_deletion_requested', WorkspaceDeletionRequested);

/** The deletion was cancelled: services that answered that they hold nothing may grant new resources again. */
export const deletionCalledOff = event('teams.deletion_called_off', TeamDeletionRequested);

export class TeamDeletionAnswered {
  @Uuid()
  team_id!: string;

  @Uuid()
  attempt_id!: string;

  @Text({ max: 64, description: 'The service that answers.' })
  holder!: string;

  @Text({
    max: 500,
    nullable: true,
    description: 'Resources that it still holds, as text for the caller; null for none.',
  })
  holds!: string | null;

  @ListOf(() => TeamHolding, { max: 20, optional: true, description: 'The same by kind; empty for nothing.' })
  remaining?: TeamHolding[];
}
/** By each service that can hold something of a team, in its own name. */
export const teamDeletionAnswered = event('teams.team_deletion_answered', TeamDeletionAnswered, { publishers: 'any' });
