import type { BilledPool, BilledSubscription } from '@atoll/contracts';
import { Json } from '@atoll/rpc';
import { decimalOf } from '../money/amounts.js';
import { largestRemainder } from '../money/rounding.js';
import { addCost, noCosts, totalOf, unitHoursOf } from './rated-usage.js';
import type { ReportSheet } from './report-sheet.js';
import type { Group, ResourceLine } from './report-usage.js';
import { latestNumber, latestText, type Told } from './resources.js';
import type { ShownGroup } from './rounding-tree.js';

/** A pool, and what each subscription has of its cost: rounded as the tree is, from the pool’s total down. */
export function poolOf(
  group: Group & ShownGroup,
  resources: readonly ResourceLine[],
  told: readonly Told[],
  sheet: ReportSheet,
): Json<BilledPool> {
  const toldOfPool = told.filter(({ poolId }) => poolId === group.id);
  const ofPool = resources.filter((resource) => resource.group === group.id);
  const subscriptions = subscriptionsOf(ofPool, toldOfPool, group.totalNano);
  const [size = null, ...otherSizes] = new Set(subscriptions.map(({ v_ram_gb }) => v_ram_gb));
  const region = latestNumber(toldOfPool, 'region_id');
  return Json.object<BilledPool>({
    pool_id: group.id,
    pool_name: latestText(toldOfPool, 'pool_name'),
    region_id: region === null ? null : String(region),
    v_ram_gb: otherSizes.length === 0 ? size : null,
    vgpu_hours: unitHoursOf(group.lines),
    ...sheet.costs(group),
    subscriptions,
  });
}

function subscriptionsOf(resources: readonly ResourceLine[], told: readonly Told[], poolNano: bigint): BilledSubscription[] {
  const ids = [...new Set(resources.map(({ timeline }) => timeline.resourceId))].sort();
  const subscriptions = ids.map((id) => resources.filter(({ timeline }) => timeline.resourceId === id));
  const exact = noCosts(ids.length);
  for (const [n, lines] of subscriptions.entries()) {
    for (const { whole, rest } of lines.map(totalOf)) addCost(exact, n, whole, rest);
  }
  const costsNano = largestRemainder(poolNano, exact.wholes, exact.rests);
  return subscriptions.map((lines, n) => {
    const timelineNos = new Set(lines.map(({ timeline }) => timeline.no));
    const toldOfIt = told.filter(({ timelineNo }) => timelineNos.has(timelineNo));
    return {
      subscription_id: (ids[n] ?? '').replace(/^gpuaas_pool:/, ''),
      profile: latestText(toldOfIt, 'profile') ?? profileIn(lines[0]?.sku),
      v_ram_gb: latestNumber(toldOfIt, 'v_ram_gb'),
      vgpu_hours: unitHoursOf(lines),
      total_cost: decimalOf(costsNano[n] ?? 0n),
    };
  });
}

/** `1g.10gb` of `gpu.A100-80GB.1g.10gb`. */
function profileIn(sku = ''): string | null {
  return /^gpu\.[^.]+\.(.+)$/.exec(sku)?.[1] ?? null;
}
