import { notFound, requirePermission, type Caller } from '@atoll/contracts';
import type { BillingReport, ReportInstant } from '@atoll/contracts/billing';
import { Statements, type Snapshot } from '@atoll/database';
import { TeamDirectory, type KnownWorkspace } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { Pace } from '@atoll/waiting';
import { Catalogues, type Catalogue, type CatalogueFilter } from './catalogue.js';

/** Whose billing is asked for. */
export interface ReportSubject {
  scope: BillingReport['scope'];
  teamNo: number;
  catalogue: Catalogue;
}

/** Reads the rest of what a report shows. What it returns is rated and written when the snapshot has ended. */
export type ReadOf<T> = (subject: ReportSubject, snapshot: Snapshot) => Promise<T>;

interface AskedTeam {
  team_id: string;
  /** A number or `all`. */
  region_id?: string;
  as_of?: string;
}

/**
 * Permissions to read billing, and the snapshot in which all of a report is read: facts and prices that are recorded
 * meanwhile are in all of its figures or in none. Throws `forbidden`, and `not_found` for another team's objects with
 * the same text as for unknown ones.
 */
@Injectable()
export class ReportAccess {
  constructor(
    private readonly directory: TeamDirectory,
    private readonly statements: Statements,
  ) {}

  /** The present, to the millisecond: a report that is asked for later may be counted up to it. */
  async now(): Promise<ReportInstant> {
    const text = `SELECT date_trunc('milliseconds', clock_timestamp()) AS now`;
    const [row] = await this.statements.query<{ now: Date }>(text, []);
    if (!row) throw new Error('The database returned no time.');
    return { as_of: row.now.toISOString() };
  }

  requireTeam(caller: Caller, teamId: string): void {
    requirePermission(caller, teamId, 'readBilling');
  }

  async requireWorkspace(caller: Caller, workspaceId: string): Promise<KnownWorkspace> {
    const workspace = await this.directory.workspace(workspaceId, teamsInReach(caller));
    requirePermission(caller, workspace.teamId, 'readBilling', 'workspace');
    return workspace;
  }

  /** Of a team that was required. */
  async team<T>(asked: AskedTeam, filter: CatalogueFilter, pace: Pace, read: ReadOf<T>): Promise<T> {
    const known = await this.ofKnownTeam(asked, filter, pace, read);
    if (known) return known.read;
    // Its owner is asked where no connection waits for the answer.
    await this.directory.teamEvenIfDeleted(asked.team_id);
    const learned = await this.ofKnownTeam(asked, filter, pace, read);
    if (!learned) throw notFound('team');
    return learned.read;
  }

  /** Of a workspace that was required. */
  async workspace<T>(
    { id, teamId, teamNo }: KnownWorkspace,
    filter: CatalogueFilter,
    pace: Pace,
    read: ReadOf<T>,
  ): Promise<T> {
    return this.statements.inSnapshot(async (snapshot) => {
      const catalogue = await new Catalogues(snapshot).read(teamId, pace, { ...filter, workspaceId: id });
      return read({ scope: { team_id: teamId, workspace_id: id }, teamNo, catalogue }, snapshot);
    });
  }

  /** Undefined for a team that has not been heard of here. */
  private async ofKnownTeam<T>(
    { team_id, region_id, as_of }: AskedTeam,
    filter: CatalogueFilter,
    pace: Pace,
    read: ReadOf<T>,
  ): Promise<{ read: T } | undefined> {
    const inRegion = region_id === undefined || region_id === 'all' ? {} : { regionId: region_id };
    return this.statements.inSnapshot(async (snapshot) => {
      const catalogue = await new Catalogues(snapshot).read(team_id, pace, { ...filter, ...inRegion, asOf: as_of });
      const { teamNo, isRegionKnown } = catalogue;
      if (teamNo === null) return undefined;
      if (!isRegionKnown) throw notFound('region');
      const scope = { team_id, ...(region_id !== undefined && { region_id }) };
      return { read: await read({ scope, teamNo, catalogue }, snapshot) };
    });
  }
}

/** The teams whose workspaces a caller may find; undefined: all. */
function teamsInReach(caller: Caller): string[] | undefined {
  return caller.kind === 'user' && !caller.platformAdmin ? caller.teams.map(({ teamId }) => teamId) : undefined;
}

/** What `local` means to a caller. */
export function zoneOf(caller: Caller): string {
  return caller.kind === 'user' ? caller.timezone : 'UTC';
}
