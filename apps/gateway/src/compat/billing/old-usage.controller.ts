import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { numberedIdPattern, OneOf, TeamPath, type CallContext } from '@atoll/contracts';
import { billingReports, type BilledSubscription } from '@atoll/contracts/billing';
import { gpuaasBatches, type Subscription } from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { oldStatusOf } from '../pools/old-status.js';
import { OldPage, pageOfAll, placeInListing } from '../http/old-pages.js';
import { exactNumber, nanoOf, quantityNanoOf } from '../http/exact.js';
import { UsageGraph, UsagePage, type SubscriptionUsage } from './old-usage.js';
import { endOf, endOfDay, OldTime, startOf } from './old-range.js';
import { inWords, withoutInterval } from './report-faults.js';
import { askReport, hoursNanoOf, OldReport } from './reports.js';

class UsageQuery extends OldPage {
  @OldTime(startOf, 'First day, or time; the first of this month if left out.', { optional: true })
  start_date?: string;

  @OldTime(endOfDay, 'Last day, which is part of the range, or time; the end of this month if left out.', {
    optional: true,
  })
  end_date?: string;
}

const granularities = { '1h': 'hourly', '1d': 'daily', '1w': 'weekly' } as const;

/** What the graph calls the fields and the intervals of a report. */
const graphWords = new Map([
  ['start_date', 'start_timestamp'],
  ['end_date', 'end_timestamp'],
  ['interval', 'granularity'],
  ...Object.entries(granularities).map(([granularity, interval]) => [interval, granularity] as const),
]);

class GraphQuery {
  @OldTime(
    (text) => startOf(timeOf(text)),
    'Start: a time in UTC, or seconds since 1970; the first of this month if left out.',
    {
      optional: true,
    },
  )
  start_timestamp?: string;

  @OldTime(
    (text) => endOf(timeOf(text)),
    'End: a time in UTC, or seconds since 1970; the end of this month if left out.',
    {
      optional: true,
    },
  )
  end_timestamp?: string;

  @OneOf('Granularity', Object.keys(granularities), {
    optional: true,
    description: 'Length of the intervals; 1d if left out.',
  })
  granularity?: keyof typeof granularities;
}

/** What subscriptions to pools used, by the pools’ bill. */
@ApiTags('Billing')
@Controller('gpuaas/:team_id')
export class OldUsageController {
  constructor(private readonly rpc: Rpc) {}

  @Get('metrics')
  @OldReport(UsagePage, 'List what subscriptions used')
  async listUsage(
    @Param() team: TeamPath,
    @Query() query: UsageQuery,
    @Context() context: CallContext,
  ): Promise<UsagePage> {
    const { start_date = monthStart(0), end_date = monthStart(1) } = query;
    const asked = { ...team, start_date, end_date, interval: 'monthly', region_id: 'all' } as const;
    const report = await askReport(this.rpc, billingReports.pools, asked, context, withoutInterval);
    const all = report.pools.flatMap(({ pool_id, pool_name, subscriptions }) =>
      subscriptions.map((used) => ({ ...used, pool_name: pool_name ?? `Pool ${pool_id}` })),
    );
    const { data, pagination } = pageOfAll(all, query);
    const known = await this.known(team, data, context);
    return {
      items: data.map((used) => usageOf(used, known.get(used.subscription_id))),
      total_hours: exactNumber(report.pools.reduce((sum, { vgpu_hours }) => sum + quantityNanoOf(vgpu_hours), 0n)),
      total_cost: exactNumber(nanoOf(report.total_cost)),
      ...placeInListing(pagination),
    };
  }

  @Get('metrics-graph')
  @OldReport(UsageGraph, 'Get what subscriptions used over time')
  async getUsageGraph(
    @Param() team: TeamPath,
    @Query() query: GraphQuery,
    @Context() context: CallContext,
  ): Promise<UsageGraph> {
    const { start_timestamp = monthStart(0), end_timestamp = monthStart(1), granularity = '1d' } = query;
    const times = { start_date: start_timestamp, end_date: end_timestamp, interval: granularities[granularity] };
    const { intervals } = await askReport(
      this.rpc,
      billingReports.pools,
      { ...team, ...times, region_id: 'all' },
      context,
      inWords(graphWords),
    );
    const points = intervals.map(({ start, items }) => ({ start, hoursNano: hoursNanoOf(items) }));
    return {
      data: points.map(({ start, hoursNano }) => {
        const hours = exactNumber(hoursNano);
        return { timestamp: start, hours, tflops: 0, value: hours };
      }),
      granularity,
      total_hours: exactNumber(points.reduce((sum, { hoursNano }) => sum + hoursNano, 0n)),
      total_tflops: 0,
    };
  }

  /** What the GPU service knows of the subscriptions on a page, by id. A bill may name others, of meters elsewhere. */
  private async known(
    team: TeamPath,
    used: readonly { subscription_id: string }[],
    context: CallContext,
  ): Promise<ReadonlyMap<string, Subscription>> {
    const named = used.map(({ subscription_id }) => subscription_id).filter((id) => numberedId.test(id));
    if (named.length === 0) return new Map();
    const subscription_ids = [...new Set(named)];
    const { data } = await this.rpc.call(gpuaasBatches.subscriptions, { ...team, subscription_ids }, context);
    return new Map(data.map((subscription) => [subscription.subscription_id, subscription]));
  }
}

const numberedId = new RegExp(numberedIdPattern);

function usageOf(
  { subscription_id, pool_name, vgpu_hours, total_cost }: BilledSubscription & { pool_name: string },
  subscription: Subscription | undefined,
): SubscriptionUsage {
  return {
    subscription_id: exactNumber(nanoOf(/^\d+$/.test(subscription_id) ? subscription_id : '0')),
    pool_name,
    gpu_count: subscription?.vgpus_allocated ?? 0,
    hours_used: exactNumber(quantityNanoOf(vgpu_hours)),
    cost: exactNumber(nanoOf(total_cost)),
    start_time: subscription?.created_at ?? null,
    end_time: null,
    status: subscription ? oldStatusOf(subscription.status) : 'unsubscribed',
  };
}

/** The first of this month, or of one so many later, in UTC. */
function monthStart(later: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later)).toISOString().slice(0, 19);
}

/** Seconds or milliseconds since 1970, and an instant in UTC, as a wall-clock time in UTC. Anything else as it is. */
function timeOf(text: string): string {
  if (/^\d{9,10}$/.test(text)) return new Date(Number(text) * 1000).toISOString().slice(0, 19);
  if (/^\d{12,13}$/.test(text)) return new Date(Number(text)).toISOString().slice(0, 19);
  return text.replace(/(?:\.\d+)?Z$/, '');
}
