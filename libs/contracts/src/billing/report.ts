import { ApiProperty } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import {
  billingIntervals,
  ComparisonQuery,
  RegionalReportQuery,
  TeamReportQuery,
  WorkspaceReportQuery,
  type BillingInterval,
} from './query.js';
import { usageKinds, type UsageKind } from './usage-event.js';

/** Money: a decimal string with at most 9 decimals, in the report's currency. */
function Money(description?: string): PropertyDecorator {
  return ApiProperty({ type: String, example: '12.340000001', ...(description && { description }) });
}

/** A quantity: a JSON number, rounded half up at 9 decimals. */
export function Quantity(description: string, options: { nullable?: boolean } = {}): PropertyDecorator {
  return ApiProperty({ type: Number, example: 744.5, description, nullable: options.nullable ?? false });
}

/** A bound of an interval: ISO 8601 with the zone's offset; `Z` in UTC. */
function Bound(): PropertyDecorator {
  return ApiProperty({ type: String, format: 'date-time', example: '2026-10-01T00:00:00+05:45' });
}

const unlimited = { max: 200_000 };

class Priced {
  @OneOf('UsageKind', usageKinds, { example: 'gpuaas_pool' })
  kind!: UsageKind;

  @Text({ max: 200, example: 'gpu.A100-80GB.1g.10gb' })
  sku!: string;
}

export class BillingItem extends Priced {
  @Text({ max: 64, nullable: true, example: 'vgpu', description: 'Unit of the SKU; null where it never had a price.' })
  unit!: string | null;

  @Quantity('Units held × hours.')
  unit_hours!: number;

  @Money('Cost of the hours that had a price.')
  cost!: string;
}

export class BillingBucket {
  @Bound()
  start!: string;

  @Bound()
  end!: string;

  @Flag({ description: 'Whether the interval is cut by the range, or still running.' })
  partial!: boolean;

  @Money()
  cost!: string;

  @ListOf(() => BillingItem, unlimited)
  items!: BillingItem[];
}

export class UnpricedUsage extends Priced {
  @Text({ max: 200, example: 'pod:trainer-xkqwz' })
  resource_id!: string;

  @Quantity('Units held × hours for which there was no price.')
  unit_hours!: number;
}

class BillingScope {
  @Uuid()
  team_id!: string;

  @Uuid({ optional: true })
  workspace_id?: string;

  @NumberedId({ optional: true, allow: ['all'] })
  region_id?: string;
}

class InCurrency {
  @Nested(() => BillingScope)
  scope!: BillingScope;

  @Text({ max: 3, example: 'USD', description: 'Currency (ISO 4217), one per deployment.' })
  currency!: string;

  @Text({ max: 64, example: 'Asia/Kathmandu' })
  timezone!: string;

  @Instant({ description: 'Instant up to which running usage is counted.' })
  as_of!: string;
}

/** `intervals` and `items` of a grouped report are the sums of the group cells shown. */
export class BillingReport extends InCurrency {
  @Bound()
  start!: string;

  @Bound()
  end!: string;

  @OneOf('BillingInterval', billingIntervals)
  interval!: BillingInterval;

  @Money()
  total_cost!: string;

  @ListOf(() => BillingBucket, unlimited)
  intervals!: BillingBucket[];

  @ListOf(() => UnpricedUsage, {
    ...unlimited,
    description: 'Usage without a price; it costs nothing until it gets one.',
  })
  unpriced!: UnpricedUsage[];
}

export class BilledGroup {
  @Money()
  total_cost!: string;

  @ListOf(() => BillingBucket, unlimited)
  intervals!: BillingBucket[];
}

export class BilledWorkspace extends BilledGroup {
  @Uuid()
  workspace_id!: string;

  @Text({ max: 100, nullable: true })
  workspace_name!: string | null;
}

export class WorkspacesReport extends BillingReport {
  @ListOf(() => BilledWorkspace, unlimited)
  workspaces!: BilledWorkspace[];
}

export class BilledSubscription {
  @Text({ max: 200 })
  subscription_id!: string;

  @Text({ max: 100, nullable: true, example: '1g.10gb' })
  profile!: string | null;

  @Quantity('Memory of one slice in GB.', { nullable: true })
  v_ram_gb!: number | null;

  @Quantity('vGPUs held × hours.')
  vgpu_hours!: number;

  @Money()
  total_cost!: string;
}

export class BilledPool extends BilledGroup {
  @NumberedId()
  pool_id!: string;

  @Text({ max: 100, nullable: true })
  pool_name!: string | null;

  @NumberedId({ nullable: true })
  region_id!: string | null;

  @Quantity('Memory of one slice in GB; null where the pool sells several profiles.', { nullable: true })
  v_ram_gb!: number | null;

  @Quantity('vGPUs held × hours.')
  vgpu_hours!: number;

  @ListOf(() => BilledSubscription, unlimited)
  subscriptions!: BilledSubscription[];
}

export class PoolsReport extends BillingReport {
  @ListOf(() => BilledPool, unlimited)
  pools!: BilledPool[];
}

/** With what a vGPU hour of the pool cost on average. */
export class RatedPool extends BilledPool {
  @Money(
    'Exact cost by exact vGPU hours, those without a price too: the price itself where one applied. Rounded half up.',
  )
  vgpu_hour_cost!: string;
}

/** What the compatibility mount shows of pools. */
export class RatedPoolsReport extends BillingReport {
  @ListOf(() => RatedPool, unlimited)
  pools!: RatedPool[];
}

export class BilledVolume extends BilledGroup {
  @Text({ max: 200 })
  volume_id!: string;

  @Text({ max: 200, nullable: true })
  name!: string | null;

  @NumberedId({ nullable: true })
  region_id!: string | null;

  @Quantity('Used size in GB (10^9 bytes) as last reported; null before the first report.', { nullable: true })
  used_size_in_gb!: number | null;

  @Quantity('GB held × hours.')
  gb_hours!: number;
}

export class StorageReport extends BillingReport {
  @ListOf(() => BilledVolume, unlimited)
  volumes!: BilledVolume[];
}

export class BilledMonth {
  @Text({ max: 7, example: '2026-10' })
  month!: string;

  @Money()
  total_cost!: string;

  @ListOf(() => BillingItem, unlimited)
  items!: BillingItem[];
}

export class CostChange {
  @Money('Total of the second month minus that of the first; negative where it fell.')
  amount!: string;

  @ApiProperty({
    type: Number,
    nullable: true,
    example: 12.5,
    description: 'Change in percent of the first month, two decimals; null where that is 0.',
  })
  percent!: number | null;
}

/**
 * `price_effect` and `quantity_effect` add up to `change`. With P = cost / unit_hours: quantity_effect = (Q1 − Q0) ×
 * P0; where Q0 or Q1 is 0 all is quantity.
 */
export class ItemChange extends Priced {
  @Money()
  start_cost!: string;

  @Money()
  end_cost!: string;

  @Money()
  change!: string;

  @Money()
  price_effect!: string;

  @Money()
  quantity_effect!: string;
}

export class ComparisonReport extends InCurrency {
  @Nested(() => BilledMonth)
  start_month!: BilledMonth;

  @Nested(() => BilledMonth)
  end_month!: BilledMonth;

  @Nested(() => CostChange)
  change!: CostChange;

  @ListOf(() => ItemChange, unlimited)
  items!: ItemChange[];
}

/** The present by the clock of the billing service, for reports that are shown together. */
export class ReportInstant {
  @Instant()
  as_of!: string;
}

export const billingReports = contract('billing.reports', {
  now: operation(Nothing, ReportInstant),
  team: operation(TeamReportQuery, BillingReport),
  workspace: operation(WorkspaceReportQuery, BillingReport),
  byWorkspace: operation(TeamReportQuery, WorkspacesReport),
  pools: operation(RegionalReportQuery, PoolsReport),
  ratedPools: operation(RegionalReportQuery, RatedPoolsReport),
  storage: operation(RegionalReportQuery, StorageReport),
  comparison: operation(ComparisonQuery, ComparisonReport),
});
