import { holderOf, type UserCaller } from '@atoll/contracts';

/**
 * In whose lane each call stands on the way to one service. A user of a single team shares the lane of that team,
 * whatever the credential, and so does a key to one team; a user of several teams has a lane of their own and delays
 * none of them. So do keys of people whom one user invited, in whatever teams. While calls of a user stand in the lane
 * of one team, those by their keys to other teams share a lane of these keys: with 60 teams one user has three lanes
 * and not 60.
 */
export class Lanes {
  /** By user: the team in whose lane calls of theirs stand, and how many. */
  readonly #standing = new Map<string, { readonly teamId: string; calls: number }>();

  /** Runs the work with the lane of the caller, who stands there until it has ended. */
  async run<T>(caller: UserCaller, work: (lane: string) => Promise<T>): Promise<T> {
    const own = holderOf(caller);
    const [team, another] = caller.teams;
    if (!team || another || caller.heldBy !== undefined) return work(own);
    const standing = this.#standing.get(own) ?? { teamId: team.teamId, calls: 0 };
    if (standing.teamId !== team.teamId) return work(`keys/${own}`);
    this.#standing.set(own, standing);
    standing.calls += 1;
    try {
      return await work(team.teamId);
    } finally {
      standing.calls -= 1;
      if (standing.calls === 0) this.#standing.delete(own);
    }
  }
}
