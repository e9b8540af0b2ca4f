import { isAppError } from '@atoll/errors';
import { notFound, teamChanged, teamDirectory, type FindTeam, type TeamChanged } from '@atoll/contracts';
import { Statements, Transactions } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DirectoryReader } from './directory-reader.js';
import type { TeamStanding } from './known-team.entity.js';

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

/** Teams and their workspaces, as their owner tells of them; what is not known here is asked of the owner once. */
@Injectable()
export class TeamDirectory {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly reader: DirectoryReader,
  ) {}

  @OnEvent(teamChanged, { consumer: 'team-directory' })
  async onTeamChanged(team: TeamChanged, { manager }: EventDelivery): Promise<void> {
    await this.apply(manager, team);
  }

  /** Throws `not_found`, in the words for another's team, where its owner does not know it either. */
  async team(teamId: string): Promise<KnownTeam> {
    return this.known(() => this.findTeam(teamId), { team_id: teamId }, 'team');
  }

  /** A workspace that is gone is found too. Throws `not_found` as `team` does. */
  async workspace(workspaceId: string): Promise<KnownWorkspace> {
    return this.known(() => this.findWorkspace(workspaceId), { workspace_id: workspaceId }, 'workspace');
  }

  /** Those of the pairs, as `team workspace`, where there is no such workspace in that team. Asks the owner once for each team that holds one. */
  async strangers(pairs: readonly { teamId: string; workspaceId: string }[]): Promise<Set<string>> {
    const named = new Map(pairs.map(({ teamId, workspaceId }) => [`${teamId} ${workspaceId}`, teamId]));
    const strangers = await this.unknown([...named.keys()]);
    if (strangers.size === 0) return strangers;
    for (const teamId of new Set([...strangers].map((pair) => named.get(pair) ?? ''))) await this.ask({ team_id: teamId });
    return this.unknown([...strangers]);
  }

  /** Those of the teams that are known here; their owner is not asked. */
  async knownTeams(teamIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.statements.query<{ id: string }>(
      'directory.known-teams',
      `SELECT id FROM team WHERE id = ANY ($1::uuid[]) AND revision > 0`,
      [teamIds],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Writes what is told of a team. Whatever the order tellings come in, the end is the same: the latest holds, and a workspace that was named once stays. */
  async apply(manager: EntityManager, { team_id, revision, name, is_suspended, status, workspaces }: TeamChanged): Promise<void> {
    await manager.query(`INSERT INTO team (id) SELECT $1 WHERE NOT EXISTS (SELECT FROM team WHERE id = $1) ON CONFLICT (id) DO NOTHING`, [
      team_id,
    ]);
    // The row is locked by its update, so that two tellings of one team come one after the other.
    const [, changed] = await manager.query<[unknown, number]>(
      `UPDATE team SET name = $2, revision = $3, is_suspended = $4, status = $5, default_workspace_id = $6 WHERE id = $1 AND revision < $3`,
      // Workspaces are told in the order they were made, and the default one is never deleted.
      [team_id, name, revision, is_suspended, status, workspaces[0]?.id ?? null],
    );
    const isLatest = changed > 0;
    const ids = workspaces.map(({ id }) => id);
    // Only a telling that comes too late names a workspace nobody knows and the latest did not name: it is gone.
    await manager.query(
      `INSERT INTO workspace (id, team_id, name, is_deleted) SELECT id, $1, name, NOT $4 FROM unnest($2::uuid[], $3::text[]) told (id, name)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, is_deleted = false WHERE $4`,
      [team_id, ids, workspaces.map((workspace) => workspace.name), isLatest],
    );
    if (!isLatest) return;
    await manager.query(`UPDATE workspace SET is_deleted = true WHERE team_id = $1 AND NOT is_deleted AND id <> ALL ($2::uuid[])`, [
      team_id,
      ids,
    ]);
  }

  private async known<T>(find: () => Promise<T | undefined>, asked: FindTeam, what: string): Promise<T> {
    const here = await find();
    if (here) return here;
    const found = (await this.ask(asked)) ? await find() : undefined;
    if (!found) throw notFound(what);
    return found;
  }

  /** Whether the owner knows such a team; then it is known here too. Throws `unavailable` where the owner is away. */
  private async ask(asked: FindTeam): Promise<boolean> {
    try {
      const team = await this.rpc.call(teamDirectory.find, asked, systemContext(this.reader.service, { deadlineMs: 2_000 }));
      await this.transactions.run((manager) => this.apply(manager, team));
      return true;
    } catch (error) {
      if (isAppError(error) && error.code === 'not_found') return false;
      throw error;
    }
  }

  private async findTeam(teamId: string): Promise<KnownTeam | undefined> {
    const [row] = await this.statements.query<KnownTeam>(
      'directory.team',
      `SELECT no, id, name, is_suspended AS "isSuspended", status, default_workspace_id AS "defaultWorkspaceId"
       FROM team WHERE id = $1 AND revision > 0`,
      [teamId],
    );
    return row;
  }

  private async findWorkspace(workspaceId: string): Promise<KnownWorkspace | undefined> {
    const [row] = await this.statements.query<KnownWorkspace>(
      'directory.workspace',
      `SELECT workspace.id, workspace.name, is_deleted AS "isDeleted", team.id AS "teamId", team.no AS "teamNo"
       FROM workspace JOIN team ON team.id = workspace.team_id WHERE workspace.id = $1`,
      [workspaceId],
    );
    return row;
  }

  private async unknown(pairs: readonly string[]): Promise<Set<string>> {
    const rows = await this.statements.query<{ pair: string }>(
      'directory.strangers',
      `SELECT pair FROM unnest($1::text[]) pair
       WHERE NOT EXISTS (
         SELECT FROM workspace WHERE id = split_part(pair, ' ', 2)::uuid AND team_id = split_part(pair, ' ', 1)::uuid
       )`,
      [pairs],
    );
    return new Set(rows.map(({ pair }) => pair));
  }
}
