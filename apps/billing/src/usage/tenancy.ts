import type { UsageEvent } from '@atoll/contracts/billing';
import type { FieldError } from '@atoll/errors';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { faultOf } from './usage-fault.js';

/** Pairs that are remembered: some tens of megabytes. */
const mostKnown = 100_000;

/** Whether facts name teams that exist and workspaces of theirs. */
@Injectable()
export class Tenancy {
  /**
   * Workspaces with their teams. A workspace stays one of its team for ever, so what was found once needs no further
   * look.
   */
  private readonly known = new Set<string>();

  constructor(private readonly directory: TeamDirectory) {}

  /** Names each event whose team or workspace does not exist. */
  async faultsOf(events: readonly UsageEvent[]): Promise<FieldError[]> {
    const unknown = new Map<string, { teamId: string; workspaceId: string }>();
    for (const { team_id: teamId, workspace_id: workspaceId } of events) {
      const pair = `${teamId} ${workspaceId}`;
      if (!this.known.has(pair)) unknown.set(pair, { teamId, workspaceId });
    }
    if (unknown.size === 0) return [];
    const strangers = await this.directory.strangers([...unknown.values()]);
    this.keep([...unknown.keys()].filter((pair) => !strangers.has(pair)));
    if (strangers.size === 0) return [];
    const strange = [...events.entries()].filter(([, { team_id, workspace_id }]) =>
      strangers.has(`${team_id} ${workspace_id}`),
    );
    const teams = await this.directory.knownTeams(strange.map(([, { team_id }]) => team_id));
    return strange.map(([index, { team_id }]) =>
      teams.has(team_id)
        ? faultOf(index, 'workspace_id', 'must be a workspace of the team that team_id names')
        : faultOf(index, 'team_id', 'must be a team'),
    );
  }

  private keep(pairs: readonly string[]): void {
    if (this.known.size + pairs.length > mostKnown) this.known.clear();
    for (const pair of pairs) this.known.add(pair);
  }
}
