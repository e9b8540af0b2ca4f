import {
  allOrPage,
  pageWindow,
  requirePermission,
  teamsThatAllow,
  windowIfLimited,
  type CallContext,
  type Caller,
} from '@atoll/contracts';
import { endedWithoutLimit, type Instance, type InstanceList, type ListInstances } from '@atoll/contracts/pods';
import { readPage, Statements } from '@atoll/database';
import { WholeListings, type Json } from '@atoll/rpc';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { instanceStatus } from './instance-status.js';

interface Row {
  id: string;
  name: string;
  kind: Instance['kind'];
  state: string;
  team_id: string;
  workspace_id: string;
  region_id: string | null;
  auto_restart: boolean | null;
  created_at: Date;
}

/** Everything that runs as an instance, of a team or of all teams of the caller: the legacy listing. */
@Injectable()
export class InstancesService {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly whole: WholeListings,
  ) {}

  /** Unless `limit` was sent all that have not ended, and of the others the newest; a page of what all teams have. */
  async list(
    { team_id, include_ended, ...asked }: ListInstances,
    context: CallContext,
  ): Promise<InstanceList | Json<InstanceList>> {
    const teamIds = await this.teamsOf(team_id, context.caller);
    const window = teamIds ? windowIfLimited(asked) : pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    if (!window) {
      return this.whole.make<InstanceList>(team_id ?? ownerOf(context.caller), context, {
        ids: async () => {
          const limits = [teamIds, isWhole ? endedWithoutLimit : 0];
          const [found] = await this.statements.query<{ ids: string | null }>('instances.ids', idsWithoutLimit, limits);
          return found?.ids?.split(',') ?? [];
        },
        entries: async (ids) => {
          const query = `SELECT * FROM (${ofTeams}) instance WHERE id = ANY ($3::uuid[]) ORDER BY created_at, id`;
          return (await this.statements.query<Row>('instances.by-ids', query, [teamIds, isWhole, ids])).map(viewOf);
        },
      });
    }
    const from = teamIds ? ofTeams : ofAll;
    const { total, rows } = await readPage<Row>(this.statements, {
      name: teamIds ? 'instances.list' : 'instances.list_all',
      count: `SELECT count(*)::int FROM (${from}) instance`,
      rows: `${from} ORDER BY created_at, id LIMIT $3 OFFSET $4`,
      order: 'created_at, id',
      values: [teamIds, isWhole, window.limit, window.offset],
    });
    return allOrPage(rows.map(viewOf), window, total);
  }

  /** null: all there are. */
  private async teamsOf(teamId: string | undefined, caller: Caller): Promise<string[] | null> {
    if (teamId === undefined) return teamsThatAllow(caller, 'readTeam');
    requirePermission(caller, teamId, 'readTeam');
    await this.teams.team(teamId);
    return [teamId];
  }
}

function viewOf({ id, name, kind, state, team_id, workspace_id, region_id, auto_restart, created_at }: Row): Instance {
  return {
    id,
    name,
    kind,
    status: instanceStatus({ kind, state }),
    team_id,
    workspace_id,
    region_id,
    ...(auto_restart !== null && { auto_restart }),
    created_at: created_at.toISOString(),
  };
}

/** Whose listings of several teams take turns. */
function ownerOf(caller: Caller): string {
  return caller.kind === 'user' ? caller.userId : caller.service;
}

/** Those whose row this holds of, in which `$1` may be the teams; `$2`: also what has ended. */
function instancesWhere(condition: string): string {
  return `SELECT pod_id AS id, pod_name AS name, 'pod' AS kind, state, team_id, workspace_id, region_id, NULL::boolean AS auto_restart, created_at FROM pod
    WHERE ${condition} AND ($2 OR state <> 'deleted')
  UNION ALL SELECT instance_id, name, 'vm', state, team_id, workspace_id, region_id, auto_restart, created_at FROM vm
    WHERE ${condition} AND ($2 OR state <> 'deleted')
  UNION ALL SELECT instance_id, name, 'baremetal', status, team_id, workspace_id, region_id, NULL, created_at FROM baremetal_instance
    WHERE ${condition} AND ($2 OR status NOT IN ('Failed', 'Released', 'Cancelled'))`;
}
const ofTeams = instancesWhere('team_id = ANY ($1::uuid[])');
const ofAll = instancesWhere('$1::uuid[] IS NULL');

/**
 * Of the teams `$1`: what has not ended, and the newest `$2` that have. Of each team and kind no more of those are
 * read.
 */
const idsWithoutLimit = `SELECT string_agg(id::text, ',' ORDER BY created_at, id) AS ids FROM (
    SELECT pod_id AS id, created_at FROM pod WHERE team_id = ANY ($1::uuid[]) AND state <> 'deleted'
    UNION ALL SELECT instance_id, created_at FROM vm WHERE team_id = ANY ($1::uuid[]) AND state <> 'deleted'
    UNION ALL SELECT instance_id, created_at FROM baremetal_instance
      WHERE team_id = ANY ($1::uuid[]) AND status NOT IN ('Failed', 'Released', 'Cancelled')
    UNION ALL (SELECT ended.id, ended.created_at FROM unnest($1::uuid[]) AS of_team (id) CROSS JOIN LATERAL (
        (SELECT pod_id AS id, created_at FROM pod WHERE team_id = of_team.id AND state = 'deleted'
          ORDER BY created_at DESC, pod_id DESC LIMIT $2)
        UNION ALL (SELECT instance_id, created_at FROM vm WHERE team_id = of_team.id AND state = 'deleted'
          ORDER BY created_at DESC, instance_id DESC LIMIT $2)
        UNION ALL (SELECT instance_id, created_at FROM baremetal_instance
          WHERE team_id = of_team.id AND status IN ('Failed', 'Released', 'Cancelled') ORDER BY created_at DESC, instance_id DESC LIMIT $2)
      ) ended ORDER BY ended.created_at DESC, ended.id DESC LIMIT $2)
  ) instance`;
