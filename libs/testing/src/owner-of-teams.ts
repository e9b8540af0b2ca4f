import { type Operation } from '@atoll/contracts';
import {
  teamDirectory,
  type HeldCredentials,
  type LookUpRoles,
  type LookUpTeams,
  type RoleInTeam,
  type TeamChanged,
  type TeamsAfter,
  type TeamUpdate,
} from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import type { InProcessBus } from '@atoll/rpc';

/** The teams service as others see it: what it owns, and whether it answers. */
export class OwnerOfTeams {
  readonly teams: TeamChanged[] = [];
  /** Who is a member of what. */
  members: RoleInTeam[] = [];
  /** Ids of the keys and sessions that have ended; all others live. */
  readonly endedCredentials = new Set<string>();
  /** Ids of keys that were replaced and live out their grace. */
  readonly replacedKeys = new Set<string>();
  /** Ids of sessions that were opened, or keys that were made, without a second factor; all others have one. */
  readonly withoutSecondFactor = new Set<string>();
  /** Ids of keys that act for their user as a whole; all others are keys to one team. */
  readonly wholeKeys = new Set<string>();
  /** Subjects that were asked for. */
  readonly asked: string[] = [];
  #stops: (() => void)[] = [];

  constructor(private readonly bus: InProcessBus) {
    this.comeBack();
  }

  /** Nobody answers for teams from now on. */
  leave(): void {
    this.#stops.splice(0).forEach((stop) => stop());
  }

  comeBack(): void {
    this.#serve(teamDirectory.lookUp, ({ team_ids = [], workspace_ids = [], within_team_ids }: LookUpTeams) => {
      const updates = this.teams.flatMap((team) => {
        const isWithin = !within_team_ids || within_team_ids.includes(team.team_id);
        const asked = team.workspaces.filter(({ id }) => isWithin && workspace_ids.includes(id));
        return team_ids.includes(team.team_id) || asked.length > 0 ? [asUpdate(team, asked)] : [];
      });
      return { updates };
    });
    this.#serve(teamDirectory.roles, ({ members }: LookUpRoles) => {
      if (members.length > 1_000) throw new AppError('invalid_input', 'members must hold at most 1000 entries.');
      return {
        members: this.members.filter((one) =>
          members.some(({ user_id, team_id }) => one.user_id === user_id && one.team_id === team_id),
        ),
      };
    });
    this.#serve(teamDirectory.liveCredentials, ({ credentials }: HeldCredentials) => ({
      credentials: credentials
        .filter(({ id }) => !this.endedCredentials.has(id))
        .map((live) => ({
          ...live,
          has_second_factor: live.kind === 'key' || !this.withoutSecondFactor.has(live.id),
          makes_keys_without_factor: this.withoutSecondFactor.has(live.id),
          is_whole_key: this.wholeKeys.has(live.id),
          is_replaced: this.replacedKeys.has(live.id),
        })),
    }));
    // Three workspaces a page, so that a few teams are several pages, and a page may end within a team.
    this.#serve(teamDirectory.page, ({ team_id = '', workspace_id = '' }: TeamsAfter) => {
      const later = this.teams
        .flatMap((team) => team.workspaces.map((workspace) => ({ team, workspace })))
        .toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
        .filter((row) => keyOf(row) > team_id + workspace_id);
      const page = Map.groupBy(later.slice(0, 3), ({ team }) => team);
      return {
        updates: [...page].map(([team, rows]) =>
          asUpdate(
            team,
            rows.map(({ workspace }) => workspace),
          ),
        ),
      };
    });
  }

  #serve<I extends object>({ subject }: Operation<I>, answer: (input: I) => object): void {
    const stop = this.bus.serve(subject, ({ payload }, respond) => {
      this.asked.push(subject);
      try {
        respond({ json: JSON.stringify(answer(JSON.parse(payload) as I)) });
      } catch (error) {
        respond({ error: error as AppError });
      }
    });
    this.#stops.push(stop);
  }
}

function keyOf({ team, workspace }: { team: TeamChanged; workspace: TeamChanged['workspaces'][number] }): string {
  return team.team_id + workspace.id;
}

/** The team with these of its workspaces. */
function asUpdate(
  { team_id, revision, name, is_suspended, status, workspaces }: TeamChanged,
  shown: TeamChanged['workspaces'],
): TeamUpdate {
  return {
    team_id,
    revision,
    team: { name, is_suspended, status, default_workspace_id: workspaces[0]?.id ?? null },
    workspaces: shown.map((workspace) => ({ ...workspace, is_deleted: false })),
    is_complete: shown.length === workspaces.length,
  };
}

/** A team as its owner tells of it first. */
export function aTeam(workspaces = [{ id: newId(), name: 'default' }]): TeamChanged {
  return { team_id: newId(), revision: 1, name: 'Research', is_suspended: false, status: 'active', workspaces };
}
