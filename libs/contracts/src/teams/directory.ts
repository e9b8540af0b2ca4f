import { contract, operation } from '../contract.js';
import { ListOf, Uuid } from '../fields.js';
import { TeamChanged } from './events.js';

/** The next teams after this one in the order of their ids; from the first where it is left out. */
export class TeamsAfter {
  @Uuid({ optional: true })
  after?: string;
}

/** A part of all teams, the deleted ones too. Empty: there are no more. */
export class TeamsSnapshot {
  @ListOf(() => TeamChanged, { max: 100 })
  teams!: TeamChanged[];
}

/** By its own id, or by that of one of its workspaces; one of the two. */
export class FindTeam {
  @Uuid({ optional: true })
  team_id?: string;

  @Uuid({ optional: true })
  workspace_id?: string;
}

/** Teams as other services keep them, for those that start without, and for a miss. For services alone. */
export const teamDirectory = contract('teams.directory', {
  snapshot: operation(TeamsAfter, TeamsSnapshot),
  /** Throws `not_found` where there is no such team. */
  find: operation(FindTeam, TeamChanged),
});
