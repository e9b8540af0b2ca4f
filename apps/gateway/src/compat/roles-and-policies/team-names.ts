import { type CallContext } from '@atoll/contracts';
import { teamBatches, type NamedTeam } from '@atoll/contracts/teams';
import type { Rpc } from '@atoll/rpc';

/** All teams with their names and image policies. Throws `forbidden` for whoever is no platform_admin. */
export async function namesOfTeams(rpc: Rpc, context: CallContext): Promise<NamedTeam[]> {
  const all: NamedTeam[] = [];
  for (;;) {
    const last = all.at(-1)?.id;
    const { teams } = await rpc.call(teamBatches.names, last === undefined ? {} : { team_id: last }, context);
    if (teams.length === 0) return all;
    all.push(...teams);
  }
}
