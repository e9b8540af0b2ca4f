import type { BilledPool, BilledSubscription } from '@atoll/contracts';
import { Json } from '@atoll/rpc';
import { decimalOf } from '../money/amounts.js';
import { largestRemainder } from '../money/rounding.js';
import type { PoolDetails, SubscriptionDetails } from './fact-details.js';
import { addCost, noCosts, totalOf, unitHoursOf } from './rated-usage.js';
import type { ReportSheet } from './report-sheet.js';
import type { Group, ResourceLine } from './report-usage.js';
import type { ShownGroup } from './rounding-tree.js';

/** What one subscription held in one pool: a line for each SKU. */
export interface PoolSubscription {
  poolId: string;
  resourceId: string;
  lines: readonly ResourceLine[];
}

/** By pool, then resource id. */
export function subscriptionsOf(resources: readonly ResourceLine[]): PoolSubscription[] {
  const byKey = Map.groupBy(resources, ({ group, timeline }) => `${group} ${timeline.resourceId}`);
  return [...byKey]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, lines]) => {
      const [first] = lines;
      return first ? [{ poolId: first.group, resourceId: first.timeline.resourceId, lines }] : [];
    });
}

/** A pool, and the share of each of its subscriptions in its cost: rounded as the tree is, from the pool’s total down. */
export function poolOf(
  group: Group & ShownGroup,
  details: PoolDetails | undefined,
  subscriptions: readonly (PoolSubscription & SubscriptionDetails)[],
  sheet: ReportSheet,
): Json<BilledPool> {
  const exact = noCosts(subscriptions.length);
  for (const [n, { lines }] of subscriptions.entries()) {
    for (const { whole, rest } of lines.map(totalOf)) addCost(exact, n, whole, rest);
  }
  const costsNano = largestRemainder(group.totalNano, exact.wholes, exact.rests);
  const sizes = new Set(subscriptions.map(({ vRamGb }) => vRamGb));
  const [size = null] = sizes;
  return Json.object<BilledPool>({
    pool_id: group.id,
    pool_name: details?.name ?? null,
    region_id: details?.regionId ?? null,
    v_ram_gb: details?.sellsSeveral || sizes.size > 1 ? null : size,
    vgpu_hours: unitHoursOf(group.lines),
    ...sheet.costs(group),
    subscriptions: subscriptions.map((subscription, n) => billedSubscription(subscription, costsNano[n] ?? 0n)),
  });
}

function billedSubscription(
  { resourceId, lines, profile, vRamGb }: PoolSubscription & SubscriptionDetails,
  costNano: bigint,
): BilledSubscription {
  return {
    subscription_id: resourceId.replace(/^gpuaas_pool:/, ''),
    profile: profile ?? profileIn(lines[0]?.sku),
    v_ram_gb: vRamGb,
    vgpu_hours: unitHoursOf(lines),
    total_cost: decimalOf(costNano),
  };
}

/** `1g.10gb` of `gpu.A100-80GB.1g.10gb`. */
function profileIn(sku = ''): string | null {
  return /^gpu\.[^.]+\.(.+)$/.exec(sku)?.[1] ?? null;
}
