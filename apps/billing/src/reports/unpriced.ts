import type { UnpricedUsage, UsageKind } from '@atoll/contracts';
import { unitHours } from './rated-usage.js';
import type { ResourceLine } from './report-usage.js';

/** By kind, SKU and resource; a resource that was in several groups is one. */
export function unpricedOf(resources: readonly ResourceLine[]): UnpricedUsage[] {
  const sums = new Map<string, { resource_id: string; kind: UsageKind; sku: string; heldNano: bigint }>();
  for (const { kind, sku, timeline, unpricedNano } of resources) {
    if (unpricedNano === 0n) continue;
    const key = `${kind} ${sku} ${timeline.resourceId}`;
    const sum = sums.get(key);
    if (sum) sum.heldNano += unpricedNano;
    else sums.set(key, { resource_id: timeline.resourceId, kind, sku, heldNano: unpricedNano });
  }
  const inOrder = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  return inOrder.map(([, { heldNano, ...named }]) => ({ ...named, unit_hours: unitHours(heldNano) }));
}
