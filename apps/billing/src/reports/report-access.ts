import { notFound, requirePermission, type BillingReport, type Caller } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { TeamDirectory } from '@atoll/team-directory';
import { Catalogues, type Catalogue, type CatalogueFilter } from './catalogue.js';

/** Whose billing is asked for, once the caller may read it. */
export interface ReportSubject {
  scope: BillingReport['scope'];
  teamNo: number;
  catalogue: Catalogue;
}

/** Who may read which billing. Throws `not_found` for what is another team's, in the words for what is not there, and `forbidden`. */
@Injectable()
export class ReportAccess {
  constructor(
    private readonly directory: TeamDirectory,
    private readonly catalogues: Catalogues,
  ) {}

  /** `regionId` is a number or `all`. */
  async team(caller: Caller, teamId: string, regionId?: string, filter: CatalogueFilter = {}): Promise<ReportSubject> {
    requirePermission(caller, teamId, 'readBilling');
    const inRegion = regionId === undefined || regionId === 'all' ? {} : { regionId };
    const [team, catalogue] = await Promise.all([this.directory.team(teamId), this.catalogues.read(teamId, { ...filter, ...inRegion })]);
    if (!catalogue.isRegionKnown) throw notFound('region');
    return { scope: { team_id: team.id, ...(regionId !== undefined && { region_id: regionId }) }, teamNo: team.no, catalogue };
  }

  async workspace(caller: Caller, workspaceId: string): Promise<ReportSubject> {
    const { id, teamId, teamNo } = await this.directory.workspace(workspaceId, teamsInReach(caller));
    requirePermission(caller, teamId, 'readBilling', 'workspace');
    const catalogue = await this.catalogues.read(teamId, { workspaceId: id });
    return { scope: { team_id: teamId, workspace_id: id }, teamNo, catalogue };
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
