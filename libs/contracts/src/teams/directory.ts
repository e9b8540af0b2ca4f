import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Flag, ListOf, OneOf } from '../fields.js';
import { Uuid, Uuids } from '../id-fields.js';
import { TeamUpdate } from './events.js';

/** Where the previous page ended: at this workspace of this team. Both are left out for the first page. */
export class TeamsAfter {
  @Uuid({ optional: true })
  team_id?: string;

  @Uuid({ optional: true })
  workspace_id?: string;
}

/** At least one of `team_ids` and `workspace_ids`. */
export class LookUpTeams {
  @Uuids({ max: 1000, optional: true, description: 'Teams, without their workspaces.' })
  team_ids?: string[];

  @Uuids({ max: 1000, optional: true, description: 'Workspaces, each with its team.' })
  workspace_ids?: string[];

  @Uuids({ max: 1000, optional: true, description: 'Only workspaces of these teams; of any team if left out.' })
  within_team_ids?: string[];
}

export class TeamUpdates {
  @ListOf(() => TeamUpdate, { max: 2000 })
  updates!: TeamUpdate[];
}

/** A user and a team of which they may be a member. */
export class UserInTeam {
  @Uuid()
  user_id!: string;

  @Uuid()
  team_id!: string;
}

export class LookUpRoles {
  @ListOf(() => UserInTeam, { max: 1000 })
  members!: UserInTeam[];
}

/** What a member is in a team now. */
export class RoleInTeam extends UserInTeam {
  @OneOf('TeamRole', teamRoles)
  role!: TeamRole;

  @Flag({ description: 'Whether the team is suspended.' })
  is_suspended!: boolean;

  @Flag({
    optional: true,
    description:
      'Whether they have not accepted the invitation yet. Until then their SSH keys give no access to the team.',
  })
  is_invited?: boolean;

  @Flag({ optional: true, description: 'Whether sessions need a second factor to act in the team.' })
  requires_second_factor?: boolean;

  @Flag({
    optional: true,
    description:
      'Whether the team required a second factor when they joined; true until they have. Keys that were made without one open nothing there while it requires one.',
  })
  required_factor_at_join?: boolean;
}

export class RolesInTeams {
  @ListOf(() => RoleInTeam, { max: 1000 })
  members!: RoleInTeam[];
}

/** By what a connection that lasts was opened, or a change is made: an API key or a session of the web page. */
export class HeldCredential {
  @OneOf('CredentialKind', ['key', 'session'])
  kind!: 'key' | 'session';

  @Uuid()
  id!: string;
}

export class HeldCredentials {
  @ListOf(() => HeldCredential, { max: 1000 })
  credentials!: HeldCredential[];
}

/** One that is neither revoked nor expired. */
export class LiveCredential extends HeldCredential {
  @Flag({
    optional: true,
    description:
      'Whether it may act in teams that require a second factor: true for a session with one, a session of the operator and every API key.',
  })
  has_second_factor?: boolean;

  @Flag({
    optional: true,
    description: 'Whether it is an API key that was replaced and is valid only for its grace period.',
  })
  is_replaced?: boolean;

  @Flag({
    optional: true,
    description: 'Whether a key that it makes was made without a second factor: it has none, or was made without one.',
  })
  makes_keys_without_factor?: boolean;

  @Flag({
    optional: true,
    description: 'Whether it is an API key that acts for its user as a whole, who is not the operator.',
  })
  is_whole_key?: boolean;
}

export class LiveCredentials {
  @ListOf(() => LiveCredential, { max: 1000 })
  credentials!: LiveCredential[];
}

/** Whether a key that was made without a second factor opens nothing in the team. */
export const isClosedToKeysWithoutFactor = ({ requires_second_factor, required_factor_at_join }: RoleInTeam): boolean =>
  requires_second_factor === true && required_factor_at_join === true;

/** Whether the team requires a second factor that its member's credential lacks there: the rule of calls of the API. */
export function isClosedTo(credential: LiveCredential, team: RoleInTeam): boolean {
  if (team.requires_second_factor !== true) return false;
  if (credential.kind === 'session') return credential.has_second_factor === false;
  if (credential.is_whole_key !== true) return false;
  return (
    team.is_invited === true || (credential.makes_keys_without_factor === true && isClosedToKeysWithoutFactor(team))
  );
}

/**
 * Teams for the projections of other services: those that start without any, and those that miss one. For services
 * alone.
 */
export const teamDirectory = contract('teams.directory', {
  /**
   * The next 500 workspaces of all teams, deleted teams included, in the order of team and workspace id. Empty after
   * the last.
   */
  page: operation(TeamsAfter, TeamUpdates),
  /** What exists of that which was asked for; nothing is said about the rest. */
  lookUp: operation(LookUpTeams, TeamUpdates),
  /**
   * The roles of those who are members now; nothing is said about the rest, nor about deleted teams. For a log-in that
   * does not come through the gateway: by SSH.
   */
  roles: operation(LookUpRoles, RolesInTeams),
  /**
   * Those that are neither revoked nor expired now; nothing is said about the rest. For connections that outlast the
   * call that opened them, and for changes that outlast the credential.
   */
  liveCredentials: operation(HeldCredentials, LiveCredentials),
});
