import { teamRoles, type TeamRole } from '../caller.js';
import { event } from '../contract.js';
import { Flag, ListOf, OneOf, Text, Uuid, WholeNumber } from '../fields.js';
import { WorkspaceName } from './team.js';

/** Grows with every change of the team: of two facts about one team the greater revision holds, whatever the order they come in. */
class TeamFact {
  @Uuid()
  team_id!: string;

  @WholeNumber({ min: 1, max: Number.MAX_SAFE_INTEGER })
  revision!: number;
}

/** The team as others need it, whole, so that facts may come out of order or not at all. */
export class TeamChanged extends TeamFact {
  @Text({ max: 100 })
  name!: string;

  @Flag()
  is_suspended!: boolean;

  @OneOf(['active', 'deleting', 'deleted'])
  status!: 'active' | 'deleting' | 'deleted';

  @ListOf(() => WorkspaceName, { max: 100_000, description: 'In the order they were made: the first is the default one.' })
  workspaces!: WorkspaceName[];
}
/** A team was made, renamed, suspended, given or deprived of a workspace, marked for deletion, deleted. */
export const teamChanged = event('teams.team_changed', TeamChanged);

export class MembershipChanged extends TeamFact {
  @Uuid()
  user_id!: string;

  @OneOf(teamRoles, { nullable: true, description: 'null once the member is gone.' })
  role!: TeamRole | null;
}
export const membershipChanged = event('teams.membership_changed', MembershipChanged);

export class TeamDeletionRequested extends TeamFact {
  @Uuid()
  attempt_id!: string;
}
/** The services that can hold something of a team or of a workspace. */
export const deletionHolders = ['gpuaas'] as const;
/** Every service of `deletionHolders` answers with `teamDeletionAnswered`. */
export const teamDeletionRequested = event('teams.team_deletion_requested', TeamDeletionRequested);

export class WorkspaceDeletionRequested extends TeamDeletionRequested {
  @Uuid()
  workspace_id!: string;
}
/** Every service of `deletionHolders` answers with `teamDeletionAnswered` what the team holds in this workspace. */
export const workspaceDeletionRequested = event('teams.workspace_deletion_requested', WorkspaceDeletionRequested);

/** What was asked comes to nothing: whoever said that nothing is held, and takes nothing new therefore, may again. */
export const deletionCalledOff = event('teams.deletion_called_off', TeamDeletionRequested);

export class TeamDeletionAnswered {
  @Uuid()
  team_id!: string;

  @Uuid()
  attempt_id!: string;

  @Text({ max: 64, description: 'The service that answers.' })
  holder!: string;

  @Text({ max: 500, nullable: true, description: 'What it still holds, in words for the caller; null for nothing.' })
  holds!: string | null;
}
export const teamDeletionAnswered = event('teams.team_deletion_answered', TeamDeletionAnswered);
