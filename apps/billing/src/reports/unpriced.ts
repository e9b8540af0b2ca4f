import type { UnpricedUsage, UsageKind } from '@atoll/contracts/billing';
import type { Pace } from '@atoll/waiting';
import { unitHours } from './rated-usage.js';
import type { ResourceLine } from './unrated-usage.js';

/** A pod costs what its slices cost: a price of its own is the operator's choice. */
export function needsPrice(kind: UsageKind): boolean {
  return kind !== 'pod';
}

/** By kind, SKU and resource, pods left out; a resource that was in several groups is one. */
export async function unpricedOf(resources: readonly ResourceLine[], pace: Pace): Promise<UnpricedUsage[]> {
  const sums = new Map<string, { resource_id: string; kind: UsageKind; sku: string; heldNano: bigint }>();
  for (const { kind, sku, resourceId, unpricedNano } of resources) {
    if (pace.isFull()) await pace.turn();
    if (unpricedNano === 0n || !needsPrice(kind)) continue;
    const key = `${kind} ${sku} ${resourceId}`;
    const sum = sums.get(key);
    if (sum) sum.heldNano += unpricedNano;
    else sums.set(key, { resource_id: resourceId, kind, sku, heldNano: unpricedNano });
  }
  const inOrder = await pace.toSorted([...sums], ([a], [b]) => (a < b ? -1 : 1));
  return pace.map(inOrder, ([, { heldNano, ...named }]) => ({ ...named, unit_hours: unitHours(heldNano) }));
}
