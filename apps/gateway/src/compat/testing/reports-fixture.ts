import type { BillingBucket, BillingReport, RatedPool } from '@atoll/contracts/billing';
import { teamId } from '../../testing/team-fixture.js';

export const item = (hours: number, cost: string, kind = 'gpuaas_pool', sku = 'gpu.A100-80GB.1g.10gb') =>
  ({ kind, sku, unit: 'vgpu', unit_hours: hours, cost }) as BillingBucket['items'][number];
export const bucket = (start: string, cost: string, ...items: BillingBucket['items']): BillingBucket => ({
  start,
  end: start,
  partial: false,
  cost,
  items,
});

export function aReport(total_cost: string, intervals: BillingBucket[] = []): BillingReport {
  const at = { start: '2026-10-01T00:00:00Z', end: '2026-11-01T00:00:00Z', as_of: '2026-11-02T00:00:00.000Z' };
  return {
    scope: { team_id: teamId },
    currency: 'USD',
    timezone: 'UTC',
    interval: 'daily',
    total_cost,
    intervals,
    unpriced: [],
    ...at,
  };
}

export const aBilledPool = (
  pool_id: string,
  pool_name: string | null,
  total_cost: string,
  intervals: BillingBucket[] = [],
): RatedPool => ({
  pool_id,
  pool_name,
  region_id: '1',
  v_ram_gb: 10,
  vgpu_hours: 48,
  vgpu_hour_cost: '0.031250001',
  total_cost,
  intervals,
  subscriptions: [{ subscription_id: pool_id, profile: '1g.10gb', v_ram_gb: 10, vgpu_hours: 48, total_cost }],
});

export const days = [
  bucket('2026-10-01T00:00:00Z', '1.5', item(24, '1.5')),
  bucket('2026-10-02T00:00:00Z', '0'),
  bucket('2026-10-03T00:00:00Z', '0', item(24, '0')),
];
