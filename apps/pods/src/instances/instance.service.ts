import { pageWindow, requirePermission, type CallContext } from '@atoll/contracts';
import type { Instance, InstanceList, ListInstances } from '@atoll/contracts/pods';
import { readPage, Statements } from '@atoll/database';
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

/** Everything of a team that runs as an instance: the legacy listing. */
@Injectable()
export class InstancesService {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
  ) {}

  /** All of them unless `limit` was sent. */
  async list({ team_id, include_ended, ...asked }: ListInstances, { caller }: CallContext): Promise<InstanceList> {
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.team(team_id);
    const window = asked.limit === undefined ? undefined : pageWindow(asked, 1);
    const { total, rows } = await readPage<Row>(this.statements, {
      name: 'instances.list',
      count: `SELECT count(*)::int FROM (${ofTeam}) instance`,
      rows: `${ofTeam} ORDER BY created_at, id LIMIT $3 OFFSET $4`,
      order: 'created_at, id',
      values: [team_id, include_ended === 'true', window?.limit ?? null, window?.offset ?? 0],
    });
    const data = rows.map(({ id, name, kind, state, team_id: teamId, workspace_id, region_id, auto_restart, created_at }) => ({
      id,
      name,
      kind,
      status: instanceStatus({ kind, state }),
      team_id: teamId,
      workspace_id,
      region_id,
      ...(auto_restart !== null && { auto_restart }),
      created_at: created_at.toISOString(),
    }));
    return { data, ...(window && { pagination: { page: window.page, limit: window.limit, total } }) };
  }
}

const ofTeam = `SELECT pod_id AS id, pod_name AS name, 'pod' AS kind, state, team_id, workspace_id, region_id, NULL::boolean AS auto_restart, created_at FROM pod
    WHERE team_id = $1 AND ($2 OR state <> 'deleted')
  UNION ALL SELECT instance_id, name, 'vm', state, team_id, workspace_id, region_id, auto_restart, created_at FROM vm
    WHERE team_id = $1 AND ($2 OR state <> 'deleted')
  UNION ALL SELECT instance_id, name, 'baremetal', status, team_id, workspace_id, region_id, NULL, created_at FROM baremetal_instance
    WHERE team_id = $1 AND ($2 OR status NOT IN ('Failed', 'Released', 'Cancelled'))`;
