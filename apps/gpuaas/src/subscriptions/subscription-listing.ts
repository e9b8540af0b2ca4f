import {
  notFound,
  pageWindow,
  requirePermission,
  requirePlatformAdmin,
  type CallContext,
  type ListAllSubscriptions,
  type ListSubscriptions,
  type MeteredSubscription,
  type MetricWindow,
  type SubscriptionList,
  type SubscriptionPage,
} from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { MetricsSource, type MeasuredSlice } from '../metrics/metrics-source.js';
import { PoolCatalogue } from '../pools/pool-catalogue.js';
import type { SubscriptionEntity } from './subscription.entity.js';
import { SubscriptionMachine } from './subscription-machine.js';
import { subscriptionView } from './subscription-view.js';
import { liveSubscription } from './subscription.machine.js';

interface Page {
  total: number;
  data: object[] | null;
}

interface SliceRow {
  subscriptionId: string;
  gpuUuid: string;
  gpuState: string;
  gpuInstanceId: number | null;
}

/** Subscriptions with what was measured of them: a page is two statements and one query of the metrics' source. */
@Injectable()
export class SubscriptionListing {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pools: PoolCatalogue,
    private readonly subscriptions: SubscriptionMachine,
    private readonly metrics: MetricsSource,
  ) {}

  async all({ metric_window, include_ended, ...asked }: ListAllSubscriptions, { caller }: CallContext): Promise<SubscriptionPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    const chosen = isWhole ? 'subscription' : `subscription WHERE ${liveSubscription}`;
    const [found] = await this.statements.query<Page>(
      `subscriptions.all.${isWhole}`,
      // The ids first, from an index alone: the way to a late page is then short.
      `SELECT (SELECT count(*)::int FROM ${chosen}) AS total, (SELECT json_agg(page) FROM (
         SELECT subscription.* FROM (
           SELECT subscription_id FROM ${chosen} ORDER BY created_at, subscription_id LIMIT $1 OFFSET $2
         ) chosen JOIN subscription USING (subscription_id) ORDER BY created_at, subscription_id
       ) page) AS data`,
      [limit, offset],
    );
    return { data: await this.measured(found, metric_window), pagination: { page, limit, total: found?.total ?? 0 } };
  }

  /** Everything unless `limit` is sent. */
  async ofTeam(query: ListSubscriptions, { caller }: CallContext): Promise<SubscriptionList> {
    const { team_id, gpuaas_id, subscription_id, metric_window, include_ended, page: askedPage, limit: askedLimit } = query;
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.team(team_id);
    await this.pools.requireGpuaas(gpuaas_id);
    const { page, limit, offset } = pageWindow({ ...(askedLimit && { limit: askedLimit, page: askedPage ?? 1 }) }, 1);
    // Asked for by its id a subscription is shown whatever became of it.
    const isWhole = include_ended === 'true' || subscription_id !== undefined;
    const chosen = `subscription JOIN pool USING (pool_id) WHERE team_id = $1 AND ($2::bigint IS NULL OR gpuaas_id = $2)
      AND ($3::bigint IS NULL OR subscription_id = $3) AND ($4 OR ${liveSubscription})`;
    const [found] = await this.statements.query<Page>(
      'subscriptions.of-team',
      `SELECT (SELECT count(*)::int FROM ${chosen}) AS total, (SELECT json_agg(page) FROM (
         SELECT subscription.* FROM ${chosen} ORDER BY subscription.created_at, subscription_id LIMIT $5 OFFSET $6
       ) page) AS data`,
      [team_id, gpuaas_id ?? null, subscription_id ?? null, isWhole, askedLimit === undefined ? null : limit, offset],
    );
    if (subscription_id !== undefined && !found?.total) throw notFound('subscription');
    const data = await this.measured(found, metric_window);
    return { data, ...(askedLimit !== undefined && { pagination: { page, limit, total: found?.total ?? 0 } }) };
  }

  private async measured(found: Page | undefined, window: MetricWindow = 'last_24h'): Promise<MeteredSubscription[]> {
    const rows = (found?.data ?? []).map((raw) => this.subscriptions.rowOf(raw)).map(datesOf);
    const slices = await this.slicesOf(rows);
    const figures = await this.metrics.read(
      window,
      await Promise.all(
        rows.map(async (row) => ({
          subscriptionId: row.subscriptionId,
          activeSince: row.activeSince,
          slices: await this.measurable(row, slices),
        })),
      ),
    );
    return Promise.all(
      rows.map(async (row) => {
        const { status = 'no_data', ...metrics } = figures.get(row.subscriptionId) ?? noFigures;
        return { ...subscriptionView(row, await this.pools.pool(row.poolId)), metrics, metrics_status: status };
      }),
    );
  }

  private async slicesOf(rows: readonly SubscriptionEntity[]): Promise<SliceRow[]> {
    if (rows.length === 0) return [];
    return this.statements.query<SliceRow>(
      'subscriptions.slices',
      `SELECT subscription_id::text AS "subscriptionId", uuid AS "gpuUuid", gpu.state AS "gpuState", gpu_instance_id AS "gpuInstanceId"
       FROM lease JOIN gpu USING (gpu_id) WHERE subscription_id = ANY ($1::bigint[]) AND lost_reason IS NULL`,
      [rows.map(({ subscriptionId }) => subscriptionId)],
    );
  }

  private async measurable({ subscriptionId, poolId }: SubscriptionEntity, slices: readonly SliceRow[]): Promise<MeasuredSlice[]> {
    const { mechanism } = await this.pools.pool(poolId);
    return slices
      .filter((slice) => slice.subscriptionId === subscriptionId)
      .map(({ gpuUuid, gpuState, gpuInstanceId }) => ({
        gpuUuid,
        mechanism,
        mode: gpuState === 'spatial' || gpuState === 'to_temporal' ? 'Spatial' : 'Temporal',
        gpuInstanceId,
      }));
  }
}

const noFigures = { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' as const };

/** A row that came through JSON: ids are numbers there and instants texts. */
function datesOf(row: SubscriptionEntity): SubscriptionEntity {
  const { subscriptionId, poolId, createdAt, activeSince } = row;
  return Object.assign(row, {
    subscriptionId: String(subscriptionId),
    poolId: String(poolId),
    createdAt: new Date(createdAt),
    activeSince: activeSince && new Date(activeSince),
  });
}
