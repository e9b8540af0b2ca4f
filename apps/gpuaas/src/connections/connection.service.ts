import { allOrPage, notFound, windowIfLimited, type CallContext } from '@atoll/contracts';
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
import { instantJson, readPage, Statements } from '@atoll/database';
import { WholeListings, type Json } from '@atoll/rpc';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
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
    private readonly gate: TeamGate,
    private readonly refreshes: ConnectionRefresh,
    private readonly whole: WholeListings,
  ) {}

  async read(query: ReadConnections, context: CallContext): Promise<ConnectionList | Json<ConnectionList>> {
    const { team_id, gpuaas_id, subscription_id, search } = query;
    await this.teams.teamFor(context.caller, team_id, 'useResources');
    await this.pools.requireGpuaas(gpuaas_id);
    const window = windowIfLimited(query);
    const asked = [team_id, gpuaas_id ?? null, search ?? '', subscription_id ?? null];
    if (!window) {
      return this.whole.make<ConnectionList>(team_id, context, {
        ids: () => this.matching(asked, [null, 0]).then(({ ids }) => ids),
        entries: async (ids) => {
          const [found] = await this.statements.query<{ data: string | null }>(
            `SELECT json_agg(page)::text AS data ${entriesQuery}`,
            [ids],
          );
          return found?.data?.slice(1, -1) ?? '';
        },
      });
    }
    const { total, ids } = await this.matching(asked, [window.limit, window.offset]);
    const [found] = await this.statements.query<{ data: Connection[] | null }>(
      `SELECT json_agg(page) AS data ${entriesQuery}`,
      [ids],
    );
    return allOrPage(found?.data ?? [], window, total);
  }

  /** Throws `not_found` where a subscription is asked for that the team does not have. */
  private async matching(asked: unknown[], window: [number | null, number]): Promise<{ total: number; ids: string[] }> {
    const [found] = await this.statements.query<{ total: number; is_known: boolean; ids: string | null }>(
      matchingQuery,
      [...asked, ...window],
    );
    if (asked[3] !== null && !found?.is_known) throw notFound('subscription');
    return { total: found?.total ?? 0, ids: found?.ids?.split(',') ?? [] };
  }

  /** Begins a refresh, or joins the one under way: 202 either way. */
  async refresh({ team_id, gpuaas_id }: RefreshConnections, context: CallContext): Promise<RefreshBegun> {
    const kept = await this.refreshes.kept(context);
    if (kept) return begunAt(kept);
    await this.gate.requireGrowth(context.caller, team_id);
    await this.pools.requireGpuaas(gpuaas_id);
    return begunAt(await this.refreshes.begin(team_id, gpuaas_id, context));
  }

  /** VMs and bare-metal instances may attach, pods may not. All of them unless `limit` was sent. */
  async compatibleInstances(
    { team_id, ...asked }: ListCompatibleInstances,
    context: CallContext,
  ): Promise<CompatibleInstances | Json<CompatibleInstances>> {
    await this.teams.teamFor(context.caller, team_id, 'readTeam');
    const window = windowIfLimited(asked);
    if (!window) {
      return this.whole.make<CompatibleInstances>(team_id, context, {
        ids: async () => {
          const [found] = await this.statements.query<{ ids: string | null }>(
            `SELECT string_agg(id::text, ',' ORDER BY created_at, id) AS ids FROM (${compatible}) instance`,
            [team_id],
          );
          return found?.ids?.split(',') ?? [];
        },
        entries: (ids) =>
          this.statements.query<CompatibleInstance>(
            `SELECT id, name, kind, status FROM (${compatible}) instance WHERE id = ANY ($2::uuid[]) ORDER BY created_at, id`,
            [team_id, ids],
          ),
      });
    }
    const { total, rows } = await readPage<CompatibleInstance>(this.statements, {
      from: `(${compatible}) instance`,
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: 'id, name, kind, status',
      values: [team_id, window.limit, window.offset],
    });
    return allOrPage(rows, window, total);
  }
}

const compatible = `
  SELECT instance_id AS id, name, 'baremetal' AS kind, 'Active' AS status, created_at FROM baremetal_instance WHERE team_id = $1 AND state = 'active'
  UNION ALL SELECT instance_id, name, 'vm', 'running', created_at FROM vm_instance WHERE team_id = $1 AND is_running`;

/**
 * Which there are, as one text, and whether the team has the one that is asked for: `readPage` gives neither. `search`
 * is a plain part of a name: position() knows no wildcards.
 */
const matchingQuery = `WITH chosen AS (
    SELECT subscription_id, subscription.created_at, pool_name, coalesce(pods, '[]') AS pods
    FROM subscription JOIN pool USING (pool_id) LEFT JOIN connection USING (subscription_id)
    WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND ${listedSubscription}
      AND ($4::bigint IS NULL OR subscription_id = $4)
  ), matching AS (
    SELECT * FROM chosen WHERE $3 = '' OR position(lower($3) IN lower(pool_name)) > 0 OR EXISTS (
      SELECT FROM jsonb_array_elements(pods) pod WHERE position(lower($3) IN lower(pod->>'pod_name')) > 0 OR EXISTS (
        SELECT FROM jsonb_array_elements(pod->'services') service WHERE position(lower($3) IN lower(service->>'service_name')) > 0
      )
    )
  )
  SELECT (SELECT count(*)::int FROM matching) AS total, EXISTS (
    SELECT FROM subscription JOIN pool USING (pool_id)
    WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2) AND subscription_id = $4
  ) AS is_known, (SELECT string_agg(subscription_id::text, ',' ORDER BY created_at, subscription_id) FROM (
    SELECT subscription_id, created_at FROM matching ORDER BY created_at, subscription_id LIMIT $5 OFFSET $6
  ) page) AS ids`;

const entriesQuery = `FROM (
    SELECT subscription_id::text, pool_name, gpuaas_id::text, region_id::text, coalesce(pods, '[]') AS pods,
      ${instantJson('refreshed_at')} AS refreshed_at,
      coalesce(has_failed OR (ended_at IS NULL AND started_at < clock_timestamp() - interval '${patienceMs} milliseconds'), false) AS stale
    FROM subscription JOIN pool USING (pool_id) JOIN gpuaas USING (gpuaas_id)
    LEFT JOIN connection USING (subscription_id)
    LEFT JOIN connection_refresh USING (team_id, gpuaas_id)
    WHERE subscription_id = ANY ($1::bigint[]) ORDER BY subscription.created_at, subscription.subscription_id
  ) page`;

const begunAt = (startedAt: Date): RefreshBegun => ({ status: 'refreshing', started_at: startedAt.toISOString() });
