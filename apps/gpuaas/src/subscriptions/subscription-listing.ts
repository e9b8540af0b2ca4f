import {
  allOrPage,
  notFound,
  pageWindow,
  requirePermission,
  requirePlatformAdmin,
  windowIfLimited,
  type CallContext,
} from '@atoll/contracts';
import {
  utilizationPoints,
  type ReadUtilization,
  type SubscriptionUtilization,
  type FindSubscriptions,
  type FoundSubscriptions,
  type ListAllSubscriptions,
  type ListSubscriptions,
  type MeteredSubscription,
  type MetricWindow,
  type SubscriptionList,
  type SubscriptionPage,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements } from '@atoll/database';
import { WholeListings, type Json } from '@atoll/rpc';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import {
  MetricsSource,
  type MeasuredSlice,
  type MeasuredSubscription,
  type SubscriptionMetrics,
} from '../metrics/metrics-source.js';
import { heldSlices, type HeldSlice } from '../metrics/held-slices.js';
import { windowMs } from '../metrics/windows.js';
import { PoolCatalogue, type KnownPool } from '../sharing/pool-catalogue.js';
import type { SubscriptionEntity } from '../model/subscription.entity.js';
import { SubscriptionSteps } from './subscription-steps.js';
import { subscriptionView } from './subscription-view.js';
import { listedSubscription } from '../model/subscription.machine.js';

/** Subscriptions with their metrics: a page is two statements and one query of the metrics' source. */
@Injectable()
export class SubscriptionListing {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pools: PoolCatalogue,
    private readonly subscriptions: SubscriptionSteps,
    private readonly metrics: MetricsSource,
    private readonly whole: WholeListings,
  ) {}

  async all(
    { metric_window, include_ended, ...asked }: ListAllSubscriptions,
    { caller }: CallContext,
  ): Promise<SubscriptionPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    const { total, data } = await this.page(
      isWhole ? 'true' : listedSubscription,
      'LIMIT $1 OFFSET $2',
      [limit, offset],
      metric_window,
    );
    return { data, pagination: { page, limit, total } };
  }

  /** All of them unless `limit` is sent. */
  async ofTeam(query: ListSubscriptions, context: CallContext): Promise<SubscriptionList | Json<SubscriptionList>> {
    const { team_id, gpuaas_id, subscription_id, metric_window, include_ended } = query;
    await this.teams.teamFor(context.caller, team_id, 'readTeam');
    await this.pools.requireGpuaas(gpuaas_id);
    const window = windowIfLimited(query);
    // Asked for by its id a subscription is shown whatever became of it.
    const isWhole = include_ended === 'true' || subscription_id !== undefined;
    // A text of its own for each case, so that the index of live rows serves those that ask for live rows.
    const where = [
      'team_id = $1',
      gpuaas_id === undefined ? '$2::bigint IS NULL' : 'pool_id IN (SELECT pool_id FROM pool WHERE gpuaas_id = $2)',
      subscription_id === undefined ? '$3::bigint IS NULL' : 'subscription_id = $3',
      isWhole ? 'true' : listedSubscription,
    ].join(' AND ');
    const values = [team_id, gpuaas_id ?? null, subscription_id ?? null];
    const required = (total: number) => {
      if (subscription_id !== undefined && total === 0) throw notFound('subscription');
    };
    if (!window) {
      return this.whole.make<SubscriptionList>(team_id, context, {
        ids: async () => {
          const ids = await this.ids(where, values);
          required(ids.length);
          return ids;
        },
        entries: (ids) => this.byIds(ids, metric_window),
      });
    }
    const { limit, offset } = window;
    const { total, data } = await this.page(where, 'LIMIT $4 OFFSET $5', [...values, limit, offset], metric_window);
    required(total);
    return allOrPage(data, window, total);
  }

  /**
   * By their ids, whatever became of them and of the team, for its bills. Without metrics: one statement, whatever else
   * the team has or had.
   */
  async find({ team_id, subscription_ids }: FindSubscriptions, { caller }: CallContext): Promise<FoundSubscriptions> {
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.teamEvenIfDeleted(team_id);
    const query =
      'SELECT * FROM subscription WHERE subscription_id = ANY ($1::bigint[]) AND team_id = $2 ORDER BY subscription_id';
    const raws = await this.statements.query<object>(query, [subscription_ids, team_id]);
    const rows = raws.map((raw) => this.subscriptions.rowOf(raw));
    const pools = await this.pools.poolsOf(rows.map(({ poolId }) => poolId));
    return { data: rows.map((row) => subscriptionView(row, poolIn(pools, row))) };
  }

  /** How its GPUs were used in the course of the window, whatever became of it. */
  async utilization(
    { subscription_id, metric_window = 'last_24h' }: ReadUtilization,
    { caller }: CallContext,
  ): Promise<SubscriptionUtilization> {
    const row = await this.subscriptions.find(subscription_id);
    if (!row) throw notFound('subscription');
    requirePermission(caller, row.teamId, 'readTeam', 'subscription');
    const pools = await this.pools.poolsOf([row.poolId]);
    const [measured] = await this.withSlices([row], pools, metric_window);
    const points = measured ? await this.metrics.course(metric_window, measured, utilizationPoints) : [];
    return {
      subscription_id,
      metric_window,
      points: points.map(({ fromMs, untilMs, ...figures }) => ({
        start: new Date(fromMs).toISOString(),
        end: new Date(untilMs).toISOString(),
        ...figures,
      })),
    };
  }

  private async page(
    where: string,
    window: string,
    values: unknown[],
    metricWindow?: MetricWindow,
  ): Promise<{ total: number; data: MeteredSubscription[] }> {
    const { total, rows } = await readPage(this.statements, {
      // The ids first, from an index alone: a late page is then read quickly.
      from: `(SELECT subscription_id, created_at FROM subscription WHERE ${where}) listed`,
      order: 'created_at, subscription_id',
      window,
      columns: 'subscription.*',
      joins: 'JOIN subscription USING (subscription_id)',
      values,
    });
    return {
      total,
      data: await this.measured(
        rows.map((raw) => this.subscriptions.rowOf(raw)),
        metricWindow,
      ),
    };
  }

  /** Their ids, in the order they were made, as one text: a row each would be thousands. */
  private async ids(where: string, values: unknown[]): Promise<string[]> {
    const [found] = await this.statements.query<{ ids: string | null }>(
      `SELECT string_agg(subscription_id::text, ',' ORDER BY created_at, subscription_id) AS ids FROM subscription WHERE ${where}`,
      values,
    );
    return found?.ids?.split(',') ?? [];
  }

  private async byIds(ids: readonly string[], window?: MetricWindow): Promise<MeteredSubscription[]> {
    const query =
      'SELECT * FROM subscription WHERE subscription_id = ANY ($1::bigint[]) ORDER BY created_at, subscription_id';
    const rows = await this.statements.query<object>(query, [ids]);
    return this.measured(
      rows.map((raw) => this.subscriptions.rowOf(raw)),
      window,
    );
  }

  private async measured(
    rows: readonly SubscriptionEntity[],
    window: MetricWindow = 'last_24h',
  ): Promise<MeteredSubscription[]> {
    const pools = await this.pools.poolsOf(rows.map(({ poolId }) => poolId));
    const sinceMs = Date.now() - windowMs[window];
    // What ended before the window has no figures in it.
    const held = rows.filter(({ state, enteredAt }) => !isEnded(state) || enteredAt.getTime() > sinceMs);
    const figures = await this.figuresOf(window, await this.withSlices(held, pools, window));
    return rows.map((row) => {
      const { status = 'no_data', ...metrics } = figures.get(row.subscriptionId) ?? noFigures;
      return { ...subscriptionView(row, poolIn(pools, row)), metrics, metrics_status: status };
    });
  }

  /** The subscriptions with what they held within the window. */
  private async withSlices(
    rows: readonly SubscriptionEntity[],
    pools: ReadonlyMap<string, KnownPool>,
    window: MetricWindow,
  ): Promise<MeasuredSubscription[]> {
    const ids = rows.map(({ subscriptionId }) => subscriptionId);
    const held = Map.groupBy(await heldSlices(this.statements, ids, window), ({ subscriptionId }) => subscriptionId);
    return rows.map((row) => {
      const pool = poolIn(pools, row);
      const slices = held.get(row.subscriptionId) ?? [];
      return {
        subscriptionId: row.subscriptionId,
        gpuaasId: pool.gpuaasId,
        slices: slices.map((slice) => measurable(slice, pool)),
        isWhole: slices.every(({ isWhole }) => isWhole),
        activeSince: row.activeSince,
      };
    });
  }

  private async figuresOf(
    window: MetricWindow,
    asked: readonly MeasuredSubscription[],
  ): Promise<ReadonlyMap<string, SubscriptionMetrics>> {
    return asked.length === 0 ? new Map<string, SubscriptionMetrics>() : this.metrics.read(window, asked);
  }
}

function isEnded(state: string): boolean {
  return state === 'unsubscribed' || state === 'failed';
}

function poolIn(pools: ReadonlyMap<string, KnownPool>, { poolId }: SubscriptionEntity): KnownPool {
  const pool = pools.get(poolId);
  if (!pool) throw new Error(`There is no pool ${poolId}.`);
  return pool;
}

function measurable(
  { isSlot, gpuUuid, gpuInstanceId, heldFrom, heldUntil }: HeldSlice,
  { mechanism }: KnownPool,
): MeasuredSlice {
  return { gpuUuid, gpuInstanceId, isMigInstance: mechanism === 'mig' && isSlot, heldFrom, heldUntil };
}

const noFigures = { cpu_usage: 0, memory_usage: 0, gpu_utilization: 0, status: 'no_data' as const };
