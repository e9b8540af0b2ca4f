import { notFound, requirePermission, type CallContext, type Caller } from '@atoll/contracts';
import type { BillingReport, ReportInstant, WorkspaceReportQuery } from '@atoll/contracts/billing';
import { Statements, type Snapshot } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { Pace } from '@atoll/waiting';
import { readCatalogue, type Catalogue, type CatalogueFilter } from './catalogue.js';
import { ReportQueue } from './report-queue.js';

/** Whose billing is asked for. */
export interface ReportSubject {
  scope: BillingReport['scope'];
  teamNo: number;
  catalogue: Catalogue;
}

/** Reads the rest of what a report shows. */
export type ReadOf<Read> = (subject: ReportSubject, snapshot: Snapshot, pace: Pace) => Promise<Read>;

/** How a report is made. */
export interface ReportPlan<Read, Report> {
  /** All kinds of usage unless given. */
  readonly filter?: CatalogueFilter;
  readonly read: ReadOf<Read>;
  /** Rates what was read, and writes it, when the snapshot has ended. */
  readonly write: (read: Read, pace: Pace) => Promise<Report>;
}

interface AskedTeam {
  team_id: string;
  /** A number or `all`. */
  region_id?: string;
  as_of?: string;
}

/**
 * Makes reports for callers who may read billing, each in its turn. All of a report is read in one snapshot: facts and
 * prices that are recorded meanwhile are in all of its figures or in none. Throws `forbidden`, and `not_found` for
 * another team's objects with the same text as for unknown ones.
 */
@Injectable()
export class ReportMaker {
  constructor(
    private readonly directory: TeamDirectory,
    private readonly statements: Statements,
    private readonly queue: ReportQueue,
  ) {}

  /** The present, to the millisecond: a report that is asked for later may be counted up to it. */
  async now(): Promise<ReportInstant> {
    const text = `SELECT date_trunc('milliseconds', clock_timestamp()) AS now`;
    const [row] = await this.statements.query<{ now: Date }>(text, []);
    if (!row) throw new Error('The database returned no time.');
    return { as_of: row.now.toISOString() };
  }

  async ofTeam<Read, Report>(
    query: AskedTeam,
    context: CallContext,
    { filter = {}, read, write }: ReportPlan<Read, Report>,
  ): Promise<Report> {
    requirePermission(context.caller, query.team_id, 'readBilling');
    return this.queue.run(query.team_id, context, async (pace) =>
      write(await this.readTeam(query, filter, pace, read), pace),
    );
  }

  async ofWorkspace<Read, Report>(
    { workspace_id, as_of }: WorkspaceReportQuery,
    context: CallContext,
    { filter = {}, read, write }: ReportPlan<Read, Report>,
  ): Promise<Report> {
    const { id, teamId, teamNo } = await this.directory.workspace(workspace_id, teamsInReach(context.caller));
    requirePermission(context.caller, teamId, 'readBilling', 'workspace');
    return this.queue.run(teamId, context, async (pace) => {
      const found = await this.statements.inSnapshot(async (snapshot) => {
        const wanted = { ...filter, asOf: as_of, workspaceId: id };
        const catalogue = await readCatalogue(snapshot, teamId, pace, wanted);
        return read({ scope: { team_id: teamId, workspace_id: id }, teamNo, catalogue }, snapshot, pace);
      });
      return write(found, pace);
    });
  }

  private async readTeam<Read>(
    asked: AskedTeam,
    filter: CatalogueFilter,
    pace: Pace,
    read: ReadOf<Read>,
  ): Promise<Read> {
    const known = await this.ofKnownTeam(asked, filter, pace, read);
    if (known) return known.read;
    // Its owner is asked where no connection waits for the answer.
    await this.directory.teamEvenIfDeleted(asked.team_id);
    const learned = await this.ofKnownTeam(asked, filter, pace, read);
    if (!learned) throw notFound('team');
    return learned.read;
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
      const catalogue = await readCatalogue(snapshot, team_id, pace, { ...filter, ...inRegion, asOf: as_of });
      const { teamNo, isRegionKnown } = catalogue;
      if (teamNo === null) return undefined;
      if (!isRegionKnown) throw notFound('region');
      const scope = { team_id, ...(region_id !== undefined && { region_id }) };
      return { read: await read({ scope, teamNo, catalogue }, snapshot, pace) };
    });
  }
}

/** The teams whose workspaces a caller may find; undefined: all. */
function teamsInReach(caller: Caller): string[] | undefined {
  return caller.kind === 'user' && !caller.platformAdmin ? caller.teams.map(({ teamId }) => teamId) : undefined;
}

/** What `local` means to a caller. */
export function profileZone({ caller }: CallContext): string {
  return caller.kind === 'user' ? caller.timezone : 'UTC';
}
