export { BilledInstance, instanceReports, InstancesReport } from './instances-report.js';
export {
  CreatePrice,
  currencies,
  Currency,
  ListPrices,
  Price,
  priceChanged,
  priceDirectory,
  PricePage,
  prices,
  PricesAfter,
  PricesInForce,
} from './price.js';
export {
  type BillingInterval,
  billingIntervals,
  type BillingRange,
  ComparisonPath,
  ComparisonQuery,
  ComparisonZone,
  RegionalBillingQuery,
  RegionalReportQuery,
  TeamBillingQuery,
  TeamReportQuery,
  WorkspaceBillingQuery,
  WorkspaceReportQuery,
} from './query.js';
export {
  BilledGroup,
  BilledMonth,
  BilledPool,
  BilledSubscription,
  BilledVolume,
  BilledWorkspace,
  BillingBucket,
  BillingReport,
  billingReports,
  ComparisonReport,
  ItemChange,
  PoolsReport,
  RatedPool,
  RatedPoolsReport,
  ReportInstant,
  StorageReport,
  UnpricedUsage,
  WorkspacesReport,
} from './report.js';
export { readUsageEvents } from './usage-check.js';
export { type UsageAttributes, UsageEvent, type UsageKind } from './usage-event.js';
export { gpuUsageTold, podUsageTold, RecordUsage, usage, type UsageBatch, UsageRecorded, UsageTold } from './usage.js';
