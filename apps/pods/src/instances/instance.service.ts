import {
  allOrPage,
  holderOf,
  pageWindow,
  teamsThatAllow,
  windowIfLimited,
  type CallContext,
  type Caller,
} from '@atoll/contracts';
import type { Instance, InstanceList, ListInstances } from '@atoll/contracts/pods';
import { readPage, Statements } from '@atoll/database';
import { WholeListings, type Json } from '@atoll/rpc';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { instancesWhere, instanceStatus, type InstanceRow } from './instance-rows.js';

/** Everything that runs as an instance, of a team or of all teams of the caller: the legacy listing. */
@Injectable()
export class InstancesService {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly whole: WholeListings,
  ) {}

  /** All of them unless `limit` was sent; a page of what all teams have. */
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
          const from = idsWhere('team_id = ANY ($1::uuid[])', isWhole);
          const query = `SELECT string_agg(id::text, ',' ORDER BY created_at, id) AS ids FROM (${from}) instance`;
          const [found] = await this.statements.query<{ ids: string | null }>(query, [teamIds]);
          return found?.ids?.split(',') ?? [];
        },
        entries: async (ids) => (await this.statements.query<InstanceRow>(byIds, [ids])).map(viewOf),
      });
    }
    const ofTeams = conditionOf(teamIds);
    const { total, rows } = await readPage<{ id: string }>(this.statements, {
      from: `(${idsWhere(ofTeams, isWhole)}) instance`,
      pageFrom: `(${idsWhere(ofTeams, isWhole, 'ORDER BY created_at, id LIMIT $2::bigint + $3::bigint')}) instance`,
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: 'row.id',
      values: [teamIds, window.limit, window.offset],
    });
    const ids = rows.map(({ id }) => id);
    const found = ids.length === 0 ? [] : await this.statements.query<InstanceRow>(byIds, [ids]);
    return allOrPage(found.map(viewOf), window, total);
  }

  /** null: all there are. */
  private async teamsOf(teamId: string | undefined, caller: Caller): Promise<string[] | null> {
    if (teamId === undefined) return teamsThatAllow(caller, 'readTeam');
    await this.teams.teamFor(caller, teamId, 'readTeam');
    return [teamId];
  }
}

function viewOf({
  id,
  name,
  kind,
  state,
  team_id,
  workspace_id,
  region_id,
  auto_restart,
  ...at
}: InstanceRow): Instance {
  return {
    id,
    name,
    kind,
    status: instanceStatus({ kind, state }),
    team_id,
    workspace_id,
    region_id,
    ...(auto_restart !== null && { auto_restart }),
    created_at: at.created_at.toISOString(),
    ...(at.deleted_at && { deleted_at: at.deleted_at.toISOString() }),
  };
}

/** Whose listings of several teams take turns. */
function ownerOf(caller: Caller): string {
  return caller.kind === 'user' ? holderOf(caller) : caller.service;
}

/** Of these teams, `$1`. Of one team the rows come in the order of an index; null: all teams there are. */
function conditionOf(teamIds: readonly string[] | null): string {
  if (teamIds === null) return '$1::uuid[] IS NULL';
  return teamIds.length === 1 ? 'team_id = ($1::uuid[])[1]' : 'team_id = ANY ($1::uuid[])';
}

/**
 * The ids of those of which this holds, with what has ended where all are wanted; of each kind the `first`: ORDER and
 * LIMIT. Where an index has all that is asked for, as of pods and with what has ended, no rows are read for what comes
 * before a page.
 */
function idsWhere(condition: string, isWhole: boolean, first = ''): string {
  const kept = isWhole ? '' : ` AND state <> 'deleted'`;
  const hosts = isWhole ? '' : ` AND status NOT IN ('Failed', 'Released', 'Cancelled')`;
  return `(SELECT pod_id AS id, created_at FROM pod WHERE ${condition}${kept} ${first})
  UNION ALL (SELECT instance_id AS id, created_at FROM vm WHERE ${condition}${kept} ${first})
  UNION ALL (SELECT instance_id AS id, created_at FROM baremetal_instance WHERE ${condition}${hosts} ${first})`;
}

/**
 * Also what has ended since its id was read: a listing shows those that there were when it began. By keys alone: with
 * the teams beside them, PostgreSQL reads an index of all that the teams ever had, for each slice of a listing.
 */
const byIds = `SELECT * FROM (${instancesWhere('true', true)}) instance WHERE id = ANY ($1::uuid[]) ORDER BY created_at, id`;
