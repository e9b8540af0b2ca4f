import { ApiProperty, ApiPropertyOptional, IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { IncludeEnded, ListOrPageOf, PageFromOne, PageFromOneOrAll, PageOf } from '../page.js';

const aTeam = { example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' };
const vgpus = {
  min: 1,
  max: 10_000,
  example: 2,
  description: 'Number of vGPUs (slices of the profile), 1 to 10000; they may lie on several GPUs of the pool.',
};

export class Subscribe {
  @Uuid(aTeam)
  team_id!: string;

  @Uuid({ optional: true, description: 'Id of the workspace; the default one of the team if left out.' })
  workspace_id?: string;

  @NumberedId({ example: '1' })
  pool_id!: string;

  @WholeNumber(vgpus)
  vgpus!: number;

  @Text({
    max: 64,
    optional: true,
    example: '1g.10gb',
    description: 'Profile of each vGPU; the smallest that the pool sells if left out.',
  })
  profile?: string;

  @Text({ max: 100, optional: true, example: 'training' })
  name?: string;

  @Flag({
    optional: true,
    description: 'Whether the call fails with 409 if the team already has a live subscription to the pool.',
  })
  unique?: boolean;
}

export class Unsubscribe {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Flag({
    optional: true,
    description: 'Whether running workloads of the subscription are stopped; otherwise they cause a 409.',
  })
  force?: boolean;
}

export class SubscriptionPath {
  @NumberedId({ example: '42' })
  subscription_id!: string;
}

export class ResizeBody {
  @WholeNumber(vgpus)
  vgpus!: number;
}

export class ResizeSubscription extends IntersectionType(SubscriptionPath, ResizeBody) {}

const subscriptionStatuses = ['subscribing', 'active', 'unsubscribing', 'unsubscribed', 'failed'] as const;
export type SubscriptionStatus = (typeof subscriptionStatuses)[number];

/** A change of size that was accepted. */
export class SubscriptionResize {
  @ApiProperty({ type: 'integer', example: 4, description: 'Number of vGPUs asked for.' })
  vgpus!: number;

  @OneOf('ResizeStatus', ['pending', 'failed'], {
    description:
      'State of the resize: pending until the nodes have confirmed it. A resize that has succeeded is not shown.',
  })
  status!: 'pending' | 'failed';

  @Text({ max: 500, nullable: true, description: 'Reason of the failure, or what the resize waits for.' })
  reason!: string | null;
}

export class Subscription {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Uuid(aTeam)
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @Text({ max: 100, nullable: true, example: 'training' })
  name!: string | null;

  @NumberedId({ example: '1' })
  pool_id!: string;

  @Text({ max: 100, example: 'a100-mig' })
  pool_name!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @OneOf('SubscriptionStatus', subscriptionStatuses, { example: 'active' })
  status!: SubscriptionStatus;

  @Text({ max: 500, nullable: true, description: 'Reason of a failure or of a wait; null otherwise.' })
  reason!: string | null;

  @Text({ max: 64, example: '1g.10gb' })
  profile!: string;

  @ApiProperty({ type: Number, example: 10, description: 'Memory of each vGPU in GB.' })
  v_ram_gb!: number;

  @ApiProperty({
    type: 'integer',
    example: 2,
    description: 'Number of vGPUs confirmed, from acceptance to the end; 0 afterwards.',
  })
  vgpus_allocated!: number;

  @Nested(() => SubscriptionResize, {
    nullable: true,
    description: 'Resize that is pending or has failed; null otherwise.',
  })
  resize!: SubscriptionResize | null;

  @Instant()
  created_at!: string;
}

export const metricWindows = ['last_1h', 'last_6h', 'last_24h', 'last_7d', 'last_30d'] as const;
export type MetricWindow = (typeof metricWindows)[number];

/** Averages over the window, in percent with two decimals; 0 where there is no sample. */
export class SubscriptionMetrics {
  @ApiProperty({ type: Number, example: 12.5 })
  cpu_usage!: number;

  @ApiProperty({ type: Number, example: 48.25, description: 'Share of the GPU memory that is in use, in percent.' })
  memory_usage!: number;

  @ApiProperty({
    type: Number,
    example: 91.07,
    description: 'Utilization of its slices in percent; of the whole GPU where it is shared in time or by MPS.',
  })
  gpu_utilization!: number;
}

export class MeteredSubscription extends Subscription {
  @Nested(() => SubscriptionMetrics)
  metrics!: SubscriptionMetrics;

  @OneOf('MetricsStatus', ['ok', 'partial', 'no_data'], {
    example: 'ok',
    description: 'Completeness of the metrics: samples for all figures, for some, or for none.',
  })
  metrics_status!: 'ok' | 'partial' | 'no_data';
}

export class SubscriptionPage extends PageOf(() => MeteredSubscription) {}

export class SubscriptionList extends ListOrPageOf(() => MeteredSubscription, { max: 1_000_000 }) {}

class OverWindow {
  @ApiPropertyOptional({ default: 'last_24h' })
  @OneOf('MetricWindow', metricWindows, {
    optional: true,
    example: 'last_24h',
    description: 'Window over which the metrics are averaged; last_24h if left out.',
  })
  metric_window?: MetricWindow;
}

export class ListAllSubscriptions extends IntersectionType(PageFromOne, OverWindow, IncludeEnded) {}

class OfTeam {
  @Uuid(aTeam)
  team_id!: string;

  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;
}

class OneSubscription {
  @NumberedId({ optional: true, example: '42', description: 'Id of the one subscription to list.' })
  subscription_id?: string;
}

export class ListSubscriptions extends IntersectionType(
  OfTeam,
  OneSubscription,
  PageFromOneOrAll,
  OverWindow,
  IncludeEnded,
) {}

export class ReadUtilizationQuery {
  @OneOf('MetricWindow', metricWindows, {
    optional: true,
    description: 'Window of the readings; last_24h if left out.',
  })
  metric_window?: MetricWindow;
}

export class ReadUtilization extends IntersectionType(SubscriptionPath, ReadUtilizationQuery) {}

const percent = { type: Number, nullable: true, minimum: 0, maximum: 100, example: 61.4 };

/** Averages over one part of the window. */
export class UtilizationPoint {
  @Instant({ description: 'Start of the part.' })
  start!: string;

  @Instant({ description: 'End of the part.' })
  end!: string;

  @ApiProperty({
    ...percent,
    description: 'Average utilization of its GPUs in percent, two decimals; null where nothing was held or measured.',
  })
  gpu_utilization!: number | null;

  @ApiProperty({
    ...percent,
    description:
      'Average share of the GPU memory in use in percent, two decimals; null where nothing was held or measured.',
  })
  memory_usage!: number | null;
}

/** Parts of equal length into which a window is divided. */
export const utilizationPoints = 30;

export class SubscriptionUtilization extends SubscriptionPath {
  @OneOf('MetricWindow', metricWindows, { example: 'last_24h', description: 'Window of the readings.' })
  metric_window!: MetricWindow;

  @ListOf(() => UtilizationPoint, {
    max: utilizationPoints,
    description: `The window in ${utilizationPoints} parts, the earliest first.`,
  })
  points!: UtilizationPoint[];
}

export const subscriptions = contract('gpuaas.subscriptions', {
  subscribe: operation(Subscribe, Subscription),
  unsubscribe: operation(Unsubscribe, Subscription),
  resize: operation(ResizeSubscription, Subscription),
  listAll: operation(ListAllSubscriptions, SubscriptionPage),
  list: operation(ListSubscriptions, SubscriptionList),
  utilization: operation(ReadUtilization, SubscriptionUtilization),
});
