import { notFound, requirePermission, type Caller } from '@atoll/contracts';
import { type BillingReport } from '@atoll/contracts/billing';
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

/**
 * Permissions to read billing. Throws `forbidden`, and `not_found` for another team's objects with the same text as for
 * unknown ones.
 */
@Injectable()
export class ReportAccess {
  constructor(
    private readonly directory: TeamDirectory,
    private readonly catalogues: Catalogues,
  ) {}

  requireTeam(caller: Caller, teamId: string): void {
    requirePermission(caller, teamId, 'readBilling');
  }

  async requireWorkspace(caller: Caller, workspaceId: string): Promise<KnownWorkspace> {
    const workspace = await this.directory.workspace(workspaceId, teamsInReach(caller));
    requirePermission(caller, workspace.teamId, 'readBilling', 'workspace');
    return workspace;
  }

  /** Of a team that was required. `regionId` is a number or `all`. */
  async team(teamId: string, pace: Pace, regionId?: string, filter: CatalogueFilter = {}): Promise<ReportSubject> {
    const inRegion = regionId === undefined || regionId === 'all' ? {} : { regionId };
    const reading = this.catalogues.read(teamId, pace, { ...filter, ...inRegion });
    const [team, catalogue] = await Promise.all([this.directory.teamEvenIfDeleted(teamId), reading]);
    if (!catalogue.isRegionKnown) throw notFound('region');
    return {
      scope: { team_id: team.id, ...(regionId !== undefined && { region_id: regionId }) },
      teamNo: team.no,
      catalogue,
    };
  }

  /** Of a workspace that was required. */
  async workspace(
    { id, teamId, teamNo }: KnownWorkspace,
    pace: Pace,
    filter: CatalogueFilter = {},
  ): Promise<ReportSubject> {
    const catalogue = await this.catalogues.read(teamId, pace, { ...filter, workspaceId: id });
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
