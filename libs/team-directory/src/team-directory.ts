import { notFound, requirePermission, type Caller, type Permission } from '@atoll/contracts';
import {
  teamChanged,
  teamDirectory,
  teamUpdated,
  type LookUpTeams,
  type TeamChanged,
  type TeamUpdate,
} from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { applyUpdate, updateOf } from './apply-update.js';
import { DirectoryReader } from './directory-reader.js';
import type { TeamStanding } from './known-team.entity.js';

/** As many as `LookUpTeams` takes of each. */
const maxPerLookUp = 1000;

export interface KnownTeam {
  /** What tables of many rows call it. */
  no: number;
  id: string;
  name: string | null;
  isSuspended: boolean;
  status: TeamStanding;
  /** Where what is asked without a workspace goes. */
  defaultWorkspaceId: string | null;
}

export interface KnownWorkspace {
  id: string;
  name: string;
  teamId: string;
  teamNo: number;
  isDeleted: boolean;
}

/**
 * A projection of the teams and workspaces that the teams service owns. What is missing here is asked of the owner
 * once.
 */
@Injectable()
export class TeamDirectory {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly reader: DirectoryReader,
  ) {}

  @OnEvent(teamUpdated, { consumer: 'team-updates' })
  async onTeamUpdated(update: TeamUpdate, { manager }: EventDelivery): Promise<void> {
    await applyUpdate(manager, update);
  }

  /** A separate consumer: it drains events published before an upgrade, in parallel to the consumer of updates. */
  @OnEvent(teamChanged, { consumer: 'team-directory' })
  async onTeamChanged(team: TeamChanged, { manager }: EventDelivery): Promise<void> {
    await applyUpdate(manager, updateOf(team));
  }

  /**
   * A team, also while it is being deleted. Throws `not_found`, in the words for another's team, if it is deleted, or
   * if its owner does not know it either.
   */
  async team(teamId: string): Promise<KnownTeam> {
    const team = await this.teamEvenIfDeleted(teamId);
    if (team.status === 'deleted') throw notFound('team');
    return team;
  }

  /**
   * As `team`, for a caller. Throws `forbidden` where their role lacks the permission, `not_found` where they have none
   * in the team.
   */
  async teamFor(caller: Caller, teamId: string, permission: Permission): Promise<KnownTeam> {
    requirePermission(caller, teamId, permission);
    return this.team(teamId);
  }

  /** As `team`, but returns a deleted team too: for its billing history. */
  async teamEvenIfDeleted(teamId: string): Promise<KnownTeam> {
    return this.known(() => this.findTeam(teamId), { team_ids: [teamId] }, 'team');
  }

  /**
   * A workspace, also one that is deleted. Throws `not_found` if its owner does not know it either. `withinTeams`: a
   * workspace of any other team is looked for in the same places, and for as long, as one that does not exist.
   */
  async workspace(workspaceId: string, withinTeams?: readonly string[]): Promise<KnownWorkspace> {
    const within = withinTeams && withinTeams.length <= maxPerLookUp ? { within_team_ids: [...withinTeams] } : {};
    return this.known(
      () => this.findWorkspace(workspaceId, withinTeams),
      { workspace_ids: [workspaceId], ...within },
      'workspace',
    );
  }

  /**
   * Those of the pairs, as `team workspace`, where there is no such workspace in that team. Asks the owner once for
   * every 1,000 unknown pairs.
   */
  async strangers(pairs: readonly { teamId: string; workspaceId: string }[]): Promise<Set<string>> {
    const named = [...new Set(pairs.map(({ teamId, workspaceId }) => `${teamId} ${workspaceId}`))];
    const unknown = [...(await this.unknown(named))];
    if (unknown.length === 0) return new Set();
    for (let at = 0; at < unknown.length; at += maxPerLookUp) {
      const asked = unknown.slice(at, at + maxPerLookUp).map((pair) => pair.split(' '));
      const team_ids = [...new Set(asked.map(([teamId = '']) => teamId))];
      await this.ask({ team_ids, workspace_ids: [...new Set(asked.map(([, workspaceId = '']) => workspaceId))] });
    }
    return this.unknown(unknown);
  }

  /** Those of the teams that are known here; their owner is not asked. */
  async knownTeams(teamIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.statements.query<{ id: string }>(
      `SELECT id FROM team WHERE id = ANY ($1::uuid[]) AND revision > 0`,
      [teamIds],
    );
    return new Set(rows.map(({ id }) => id));
  }

  private async known<T>(find: () => Promise<T | undefined>, asked: LookUpTeams, what: string): Promise<T> {
    const here = await find();
    if (here) return here;
    await this.ask(asked);
    const found = await find();
    if (!found) throw notFound(what);
    return found;
  }

  /** Copies what the owner knows of this. Throws `unavailable` if the owner does not respond. */
  private async ask(asked: LookUpTeams): Promise<void> {
    const { updates } = await this.rpc.call(
      teamDirectory.lookUp,
      asked,
      systemContext(this.reader.service, { deadlineMs: 2_000 }),
    );
    if (updates.length === 0) return;
    // In one order, so that two look-ups at once do not wait for each other.
    const ordered = updates.toSorted((one, other) => (one.team_id < other.team_id ? -1 : 1));
    await this.transactions.run(async (manager) => {
      for (const update of ordered) await applyUpdate(manager, update);
    });
  }

  private async findTeam(teamId: string): Promise<KnownTeam | undefined> {
    const [row] = await this.statements.query<KnownTeam>(
      `SELECT no, id, name, is_suspended AS "isSuspended", status, default_workspace_id AS "defaultWorkspaceId"
       FROM team WHERE id = $1 AND revision > 0`,
      [teamId],
    );
    return row;
  }

  private async findWorkspace(
    workspaceId: string,
    withinTeams?: readonly string[],
  ): Promise<KnownWorkspace | undefined> {
    const [row] = await this.statements.query<KnownWorkspace>(
      `SELECT workspace.id, workspace.name, is_deleted AS "isDeleted", team.id AS "teamId", team.no AS "teamNo"
       FROM workspace JOIN team ON team.id = workspace.team_id
       WHERE workspace.id = $1 AND ($2::uuid[] IS NULL OR team.id = ANY ($2))`,
      [workspaceId, withinTeams ?? null],
    );
    return row;
  }

  private async unknown(pairs: readonly string[]): Promise<Set<string>> {
    const rows = await this.statements.query<{ pair: string }>(
      `SELECT pair FROM unnest($1::text[]) pair
       WHERE NOT EXISTS (
         SELECT FROM workspace WHERE id = split_part(pair, ' ', 2)::uuid AND team_id = split_part(pair, ' ', 1)::uuid
       )`,
      [pairs],
    );
    return new Set(rows.map(({ pair }) => pair));
  }
}
