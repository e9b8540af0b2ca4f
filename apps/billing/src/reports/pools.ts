import type { BilledPool, BilledSubscription, RatedPool } from '@atoll/contracts/billing';
import { boardNamed, vRamGb } from '@atoll/gpu';
import { decimalOf } from '../money/amounts.js';
import { largestRemainder } from '../money/rounding.js';
import type { Pace } from '@atoll/waiting';
import type { PoolDetails, SubscriptionDetails } from './fact-details.js';
import type { JsonWriter } from './json-writer.js';
import { addCost, noCosts, totalOf, unitHourCostOf, unitHoursOf } from './rated-usage.js';
import type { Head } from './report-sheet.js';
import type { Group } from './report-usage.js';
import type { ShownGroup } from './rounding-tree.js';
import { placedId, type ResourceLine } from './unrated-usage.js';

/** What one subscription held in one pool: a line for each SKU. */
export interface PoolSubscription extends SubscriptionDetails {
  poolId: string;
  resourceId: string;
  lines: readonly ResourceLine[];
}

/** By pool, then resource id; the details are by `placedId`, and where no fact has them those of the SKU. */
export async function subscriptionsOf(
  resources: readonly ResourceLine[],
  details: ReadonlyMap<string, SubscriptionDetails>,
  pace: Pace,
): Promise<PoolSubscription[]> {
  const byId = await pace.groupBy(resources, placedId);
  const inOrder = await pace.toSorted([...byId], ([a], [b]) => (a < b ? -1 : 1));
  return pace.map(inOrder, ([id, lines]) => {
    const told = details.get(id);
    const sold = soldAs(lines[0]?.sku);
    return {
      profile: told?.profile ?? sold.profile,
      vRamGb: told?.vRamGb ?? sold.vRamGb,
      poolId: lines[0]?.group ?? '',
      resourceId: lines[0]?.resourceId ?? '',
      lines,
    };
  });
}

interface PoolInside {
  details: PoolDetails | undefined;
  subscriptions: readonly PoolSubscription[];
  /** Whether it is shown what a vGPU hour cost. */
  isRated: boolean;
}

export async function headOfPool(
  { id, lines }: Group,
  { details, subscriptions, isRated }: PoolInside,
  pace: Pace,
): Promise<Omit<Head<BilledPool> & Partial<RatedPool>, 'subscriptions'>> {
  const sizes = new Set(subscriptions.flatMap((one) => one.vRamGb ?? []));
  const [size = null] = sizes;
  return {
    pool_id: id,
    pool_name: details?.name ?? null,
    region_id: details?.regionId ?? null,
    v_ram_gb: details?.sellsSeveral || sizes.size > 1 ? null : size,
    vgpu_hours: await unitHoursOf(lines, pace),
    ...(isRated && { vgpu_hour_cost: await unitHourCostOf(lines, pace) }),
  };
}

/** The subscriptions of a pool, with their shares of its cost: rounded as the tree is, from the pool’s total down. */
export async function writeSubscriptions(
  writer: JsonWriter,
  { totalNano }: ShownGroup,
  subscriptions: readonly PoolSubscription[],
  pace: Pace,
): Promise<void> {
  const costsNano = await sharesOf(totalNano, subscriptions, pace);
  writer.text(',"subscriptions":');
  await writer.list(subscriptions, pace, async ({ resourceId, lines, profile, vRamGb: memoryGb }, n) => {
    const subscription: BilledSubscription = {
      subscription_id: resourceId.replace(/^gpuaas_pool:/, ''),
      profile,
      v_ram_gb: memoryGb,
      vgpu_hours: await unitHoursOf(lines, pace),
      total_cost: decimalOf(costsNano[n] ?? 0n),
    };
    writer.value(subscription);
  });
}

/** Of a pool’s total: what each of its subscriptions costs. */
async function sharesOf(
  totalNano: bigint,
  subscriptions: readonly PoolSubscription[],
  pace: Pace,
): Promise<readonly bigint[]> {
  const exact = noCosts(subscriptions.length);
  for (const [n, { lines }] of subscriptions.entries()) {
    for (const line of lines) {
      const { whole, rest } = await totalOf(line, pace);
      addCost(exact, n, whole, rest);
    }
  }
  return largestRemainder(totalNano, exact.wholes, exact.rests, pace);
}

/** `1g.10gb` of 10 GB for `gpu.A100-80GB.1g.10gb`; null is what the SKU does not say, or of no known board. */
function soldAs(sku = ''): SubscriptionDetails {
  const [, board = '', profile] = /^gpu\.([^.]+)\.(.+)$/.exec(sku) ?? [];
  return profile === undefined ? { profile: null, vRamGb: null } : { profile, vRamGb: memoryOf(board, profile) };
}

function memoryOf(boardName: string, profile: string): number | null {
  const board = boardNamed(boardName);
  if (!board) return null;
  try {
    return vRamGb(board, profile);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
