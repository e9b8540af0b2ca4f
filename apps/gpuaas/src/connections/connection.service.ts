import { allOrPage, notFound, pageWindow, requirePermission, windowIfLimited, type CallContext } from '@atoll/contracts';
import {
  type CompatibleInstance,
  type CompatibleInstances,
  type Connection,
  type ConnectionList,
  type ListCompatibleInstances,
  type ReadConnections,
  type RefreshBegun,
  type RefreshConnections,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { listedSubscription } from '../model/subscription.machine.js';
import { ConnectionRefresh, patienceMs } from './connection-refresh.js';

/** How what runs on a team's subscriptions is reached, as last refreshed. */
@Injectable()
export class ConnectionsService {
  constructor(
    private readonly statements: Statements,
    private readonly pools: PoolCatalogue,
    private readonly teams: TeamDirectory,
    private readonly refreshes: ConnectionRefresh,
  ) {}

  async read(query: ReadConnections, { caller }: CallContext): Promise<ConnectionList> {
    const { team_id, gpuaas_id, subscription_id, search, page: askedPage, limit: askedLimit } = query;
    requirePermission(caller, team_id, 'useResources');
    await this.teams.team(team_id);
    await this.pools.requireGpuaas(gpuaas_id);
    const { page, limit, offset } = pageWindow({ ...(askedLimit && { limit: askedLimit, page: askedPage ?? 1 }) }, 1);
    const [found] = await this.statements.query<{ total: number; is_known: boolean; data: Connection[] | null }>(
      'connections.read',
      readQuery,
      [team_id, gpuaas_id ?? null, search ?? '', askedLimit === undefined ? null : limit, offset, subscription_id ?? null],
    );
    if (subscription_id !== undefined && !found?.is_known) throw notFound('subscription');
    const data = found?.data ?? [];
    return { data, ...(askedLimit !== undefined && { pagination: { page, limit, total: found?.total ?? 0 } }) };
  }

  /** Begins a refresh, or joins the one under way: 202 either way. */
  async refresh({ team_id, gpuaas_id }: RefreshConnections, context: CallContext): Promise<RefreshBegun> {
    requirePermission(context.caller, team_id, 'useResources');
    await this.teams.team(team_id);
    await this.pools.requireGpuaas(gpuaas_id);
    const startedAt = await this.refreshes.begin(team_id, gpuaas_id, context);
    return { status: 'refreshing', started_at: startedAt.toISOString() };
  }

  /** VMs and bare-metal instances may attach, pods may not. All of them unless `limit` was sent. */
  async compatibleInstances({ team_id, ...asked }: ListCompatibleInstances, { caller }: CallContext): Promise<CompatibleInstances> {
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.team(team_id);
    const window = windowIfLimited(asked);
    const { total, rows } = await readPage<CompatibleInstance>(this.statements, {
      name: 'connections.compatible',
      count: `SELECT count(*)::int FROM (${compatible}) instance`,
      rows: `SELECT * FROM (${compatible}) instance ORDER BY created_at, id LIMIT $2 OFFSET $3`,
      order: 'created_at, id',
      values: [team_id, window?.limit ?? null, window?.offset ?? 0],
    });
    const data = rows.map(({ id, name, kind, status }) => ({ id, name, kind, status }));
    return allOrPage(data, window, total);
  }
}

const compatible = `
  SELECT instance_id AS id, name, 'baremetal' AS kind, 'Active' AS status, created_at FROM baremetal_instance WHERE team_id = $1 AND state = 'active'
  UNION ALL SELECT instance_id, name, 'vm', 'running', created_at FROM vm_instance WHERE team_id = $1 AND is_running`;

/** `search` is a plain part of a name: position() knows no wildcards. */
const readQuery = `WITH chosen AS (
    SELECT subscription_id, subscription.created_at, pool_name, gpuaas_id, region_id, coalesce(pods, '[]') AS pods, refreshed_at,
      coalesce(has_failed OR (ended_at IS NULL AND started_at < clock_timestamp() - interval '${patienceMs} milliseconds'), false) AS stale
    FROM subscription JOIN pool USING (pool_id) JOIN gpuaas USING (gpuaas_id)
    LEFT JOIN connection USING (subscription_id)
    LEFT JOIN connection_refresh USING (team_id, gpuaas_id)
    WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND ${listedSubscription}
      AND ($6::bigint IS NULL OR subscription_id = $6)
  ), matching AS (
    SELECT * FROM chosen WHERE $3 = '' OR position(lower($3) IN lower(pool_name)) > 0 OR EXISTS (
      SELECT FROM jsonb_array_elements(pods) pod WHERE position(lower($3) IN lower(pod->>'pod_name')) > 0 OR EXISTS (
        SELECT FROM jsonb_array_elements(pod->'services') service WHERE position(lower($3) IN lower(service->>'service_name')) > 0
      )
    )
  )
  SELECT (SELECT count(*)::int FROM matching) AS total, EXISTS (
    SELECT FROM subscription JOIN pool USING (pool_id)
    WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND subscription_id = $6
  ) AS is_known, (SELECT json_agg(page) FROM (
    SELECT subscription_id::text, pool_name, gpuaas_id::text, region_id::text, pods,
      to_char(refreshed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS refreshed_at, stale
    FROM matching ORDER BY matching.created_at, matching.subscription_id LIMIT $4 OFFSET $5
  ) page) AS data`;
