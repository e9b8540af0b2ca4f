import { notFound, pageWindow, requirePermission, requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import {
  type ListAllSubscriptions,
  type ListSubscriptions,
  type MeteredSubscription,
  type MetricWindow,
  type SubscriptionList,
  type SubscriptionPage,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { MetricsSource, type MeasuredSlice } from '../metrics/metrics-source.js';
import { windowMs } from '../metrics/windows.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';
import { listedSubscription } from '../model/subscription.machine.js';

interface SliceRow {
  subscriptionId: string;
  gpuUuid: string;
  isSlot: boolean;
  gpuInstanceId: number | null;
  heldFrom: Date;
  heldUntil: Date | null;
}

/** Times in which one subscription held a slice, at most, the latest of the window: more than workloads of an hour in a month. */
const maxHeld = 1_000;

/** Subscriptions with their metrics: a page is two statements and one query of the metrics' source. */
@Injectable()
export class SubscriptionListing {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pools: PoolCatalogue,
    private readonly subscriptions: SubscriptionSteps,
    private readonly metrics: MetricsSource,
  ) {}

  async all({ metric_window, include_ended, ...asked }: ListAllSubscriptions, { caller }: CallContext): Promise<SubscriptionPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    const { total, data } = await this.page(
      `subscriptions.all.${isWhole}`,
      isWhole ? 'true' : listedSubscription,
      [limit, offset],
      metric_window,
    );
    return { data, pagination: { page, limit, total } };
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
    // A text of its own for each case, so that the index of live rows serves those that ask for live rows.
    const filters = [
      'team_id = $3',
      ...(isWhole ? [] : [listedSubscription]),
      gpuaas_id === undefined ? '$4::bigint IS NULL' : 'pool_id IN (SELECT pool_id FROM pool WHERE gpuaas_id = $4)',
      subscription_id === undefined ? '$5::bigint IS NULL' : 'subscription_id = $5',
    ];
    const { total, data } = await this.page(
      `subscriptions.of-team.${isWhole}.${gpuaas_id !== undefined}.${subscription_id !== undefined}`,
      filters.join(' AND '),
      [askedLimit === undefined ? null : limit, offset, team_id, gpuaas_id ?? null, subscription_id ?? null],
      metric_window,
    );
    if (subscription_id !== undefined && total === 0) throw notFound('subscription');
    return { data, ...(askedLimit !== undefined && { pagination: { page, limit, total } }) };
  }

  /** `$1` is the limit and `$2` the offset; `where` may use further values. */
  private async page(
    name: string,
    where: string,
    values: unknown[],
    window: MetricWindow = 'last_24h',
  ): Promise<{ total: number; data: MeteredSubscription[] }> {
    const { total, rows } = await readPage(this.statements, {
      name,
      count: `SELECT count(*)::int FROM subscription WHERE ${where}`,
      // The ids first, from an index alone: a late page is then read quickly.
      rows: `SELECT subscription.* FROM subscription JOIN (
          SELECT subscription_id FROM subscription WHERE ${where} ORDER BY created_at, subscription_id LIMIT $1 OFFSET $2
        ) chosen USING (subscription_id)`,
      order: 'created_at, subscription_id',
      values,
    });
    return {
      total,
      data: await this.measured(
        rows.map((raw) => this.subscriptions.rowOf(raw)),
        window,
      ),
    };
  }

  private async measured(rows: readonly SubscriptionEntity[], window: MetricWindow): Promise<MeteredSubscription[]> {
    const pools = await this.pools.poolsOf(rows.map(({ poolId }) => poolId));
    const slices = Map.groupBy(await this.slicesOf(rows, window), ({ subscriptionId }) => subscriptionId);
    const shown = rows.map((row) => ({ row, pool: poolIn(pools, row) }));
    const figures = await this.metrics.read(
      window,
      shown.map(({ row: { subscriptionId, activeSince }, pool }) => ({
        subscriptionId,
        activeSince,
        slices: (slices.get(subscriptionId) ?? []).map((slice) => measurable(slice, pool)),
      })),
    );
    return shown.map(({ row, pool }) => {
      const { status = 'no_data', ...metrics } = figures.get(row.subscriptionId) ?? noFigures;
      return { ...subscriptionView(row, pool), metrics, metrics_status: status };
    });
  }

  /** What was held within the window. */
  private async slicesOf(rows: readonly SubscriptionEntity[], window: MetricWindow): Promise<SliceRow[]> {
    if (rows.length === 0) return [];
    return this.statements.query<SliceRow>(
      'subscriptions.held-slices',
      `SELECT held.subscription_id AS "subscriptionId", uuid AS "gpuUuid", is_slot AS "isSlot", gpu_instance_id AS "gpuInstanceId",
         held_from AS "heldFrom", held_until AS "heldUntil"
       FROM unnest($1::bigint[]) asked (subscription_id)
       CROSS JOIN LATERAL (
         SELECT * FROM held_slice WHERE held_slice.subscription_id = asked.subscription_id
           AND (held_until IS NULL OR held_until > clock_timestamp() - $2 * interval '1 millisecond')
         ORDER BY held_from DESC LIMIT ${maxHeld}
       ) held JOIN gpu USING (gpu_id)`,
      [rows.map(({ subscriptionId }) => subscriptionId), windowMs[window]],
    );
  }
}

function poolIn(pools: ReadonlyMap<string, KnownPool>, { poolId }: SubscriptionEntity): KnownPool {
  const pool = pools.get(poolId);
  if (!pool) throw new Error(`There is no pool ${poolId}.`);
  return pool;
}

function measurable({ isSlot, gpuUuid, gpuInstanceId, heldFrom, heldUntil }: SliceRow, { mechanism }: KnownPool): MeasuredSlice {
  return { gpuUuid, gpuInstanceId, isMigInstance: mechanism === 'mig' && isSlot, heldFrom, heldUntil };
}

const noFigures = { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' as const };
