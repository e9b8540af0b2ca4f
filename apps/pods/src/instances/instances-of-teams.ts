import { notFound, requirePermission, requirePlatformAdmin, type CallContext, type Caller } from '@atoll/contracts';
import type { FindInstances, FoundInstance, FoundInstances } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { PodSteps } from '../pods/pod-steps.js';
import { podView, shownColumns } from '../pods/pod-view.js';
import { VmSteps } from '../vms/vm-steps.js';
import { vmView } from '../vms/vm-view.js';
import { instancesWhere, instanceStatus, type InstanceRow } from './instance-rows.js';

/** Those that have not ended: of the team `$1` and with the id `$2`, where those are not null. */
const live = `SELECT * FROM (${instancesWhere('($1::uuid IS NULL OR team_id = $1)', false)}) AS instance WHERE $2::uuid IS NULL OR id = $2`;

const countsQuery = `SELECT kind, state, count(*)::int AS count FROM (${live}) AS live GROUP BY kind, state ORDER BY kind, state`;

const pageQuery = `SELECT * FROM (${live}) AS live ORDER BY created_at, id LIMIT $3 OFFSET $4`;

const exposedQuery = `SELECT pod_id, count(*)::int AS count FROM exposure WHERE pod_id = ANY ($1::uuid[]) AND state <> 'deleted' GROUP BY pod_id`;

/** The instances of one team or of all, a page in five statements. */
@Injectable()
export class InstancesOfTeams {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pods: PodSteps,
    private readonly vms: VmSteps,
  ) {}

  async find({ team_id, instance_id, page, limit }: FindInstances, { caller }: CallContext): Promise<FoundInstances> {
    if (team_id !== undefined) await this.teams.teamFor(caller, team_id, 'readTeam');
    else if (instance_id === undefined) requirePlatformAdmin(caller);
    const wanted = [team_id ?? null, instance_id ?? null];
    const states = await this.statements.query<Pick<InstanceRow, 'kind' | 'state'> & { count: number }>(
      countsQuery,
      wanted,
    );
    const counts = new Map<string, number>();
    for (const state of states)
      counts.set(instanceStatus(state), (counts.get(instanceStatus(state)) ?? 0) + state.count);
    const total = states.reduce((sum, { count }) => sum + count, 0);
    const shown = Math.min(page, Math.max(0, Math.ceil(total / limit) - 1));
    const rows = await this.statements.query<InstanceRow>(pageQuery, [...wanted, limit, shown * limit]);
    if (instance_id !== undefined) requireOwn(rows, caller);
    return {
      data: await this.complete(rows),
      pagination: { page: shown, limit, total },
      status_counts: [...counts].map(([status, count]) => ({ status, count })),
    };
  }

  private async complete(rows: readonly InstanceRow[]): Promise<FoundInstance[]> {
    const idsOf = (wanted: InstanceRow['kind']) => rows.flatMap(({ id, kind }) => (kind === wanted ? [id] : []));
    const ids = idsOf('pod');
    const [pods, vms, exposed] = await Promise.all([
      this.statements.query(`SELECT ${shownColumns} FROM pod row WHERE pod_id = ANY ($1::uuid[])`, [ids]),
      this.statements.query('SELECT * FROM vm WHERE instance_id = ANY ($1::uuid[])', [idsOf('vm')]),
      this.statements.query<{ pod_id: string; count: number }>(exposedQuery, [ids]),
    ]);
    const podOf = new Map(pods.map((raw) => podView(this.pods.rowOf(raw))).map((pod) => [pod.pod_id, pod]));
    const vmOf = new Map(vms.map((raw) => vmView(this.vms.rowOf(raw))).map((vm) => [vm.instance_id, vm]));
    const exposedOf = new Map(exposed.map(({ pod_id, count }) => [pod_id, count]));
    return rows.map((row) => {
      const { id, name, kind, team_id, workspace_id, region_id, created_at } = row;
      const instance = {
        id,
        name,
        kind,
        status: instanceStatus(row),
        team_id,
        workspace_id,
        region_id,
        created_at: created_at.toISOString(),
      };
      return {
        ...instance,
        pod: podOf.get(id) ?? null,
        vm: vmOf.get(id) ?? null,
        exposed_count: exposedOf.get(id) ?? 0,
      };
    });
  }
}

/** Another team's instance is answered as one that does not exist. */
function requireOwn([row]: readonly InstanceRow[], caller: Caller): void {
  if (!row) throw notFound('instance');
  requirePermission(caller, row.team_id, 'readTeam', 'instance');
}
