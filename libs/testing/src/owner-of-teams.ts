import { notFound, teamDirectory, type FindTeam, type Operation, type TeamChanged, type TeamsAfter } from '@atoll/contracts';
import { newId } from '@atoll/database';
import type { AppError } from '@atoll/errors';
import type { InProcessBus } from '@atoll/rpc';

/** The teams service as others see it: what it owns, and whether it answers. */
export class OwnerOfTeams {
  readonly teams: TeamChanged[] = [];
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
    this.#serve(teamDirectory.find, ({ team_id, workspace_id }: FindTeam) => {
      const found = this.teams.find((team) => team.team_id === team_id || team.workspaces.some(({ id }) => id === workspace_id));
      if (!found) throw notFound('team');
      return found;
    });
    this.#serve(teamDirectory.snapshot, ({ after = '' }: TeamsAfter) => {
      const later = this.teams.toSorted((one, other) => (one.team_id < other.team_id ? -1 : 1)).filter(({ team_id }) => team_id > after);
      return { teams: later.slice(0, 2) };
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

/** A team as its owner tells of it first. */
export function aTeam(workspaces = [{ id: newId(), name: 'default' }]): TeamChanged {
  return { team_id: newId(), revision: 1, name: 'Research', is_suspended: false, status: 'active', workspaces };
}
