import type { BillingBucket, BillingItem, BillingReport, UnpricedUsage } from '@atoll/contracts';
import type { BillingPeriod } from '../calendar/billing-range.js';
import { decimalOf } from '../money/amounts.js';
import { unitHours } from './rated-usage.js';
import type { ReportSubject } from './report-access.js';
import type { ReportLine, ResourceLine } from './report-usage.js';
import { mergeGroups, roundTree, type ShownGroup, type ShownItem } from './rounding-tree.js';

/** The lines of a workspace, of a pool, of a volume; of a report without groups, all. */
export interface Group<Line = ReportLine> {
  id: string;
  lines: readonly Line[];
}

/** Lines by group. `orderOf` gives the text that groups are sorted by; their ids, unless given. */
export function groupsOf<Line extends ReportLine>(lines: readonly Line[], orderOf = (id: string): string => id): Group<Line>[] {
  const groups = new Map<string, Line[]>();
  for (const line of lines) {
    const group = groups.get(line.group);
    if (group) group.push(line);
    else groups.set(line.group, [line]);
  }
  return [...groups].map(([id, ofGroup]) => ({ id, lines: ofGroup })).sort((a, b) => (orderOf(a.id) < orderOf(b.id) ? -1 : 1));
}

export interface ReportParts<Line> extends ReportSubject {
  currency: string;
  period: BillingPeriod;
  /** In the order in which they are shown. */
  groups: readonly Group<Line>[];
  resources: readonly ResourceLine[];
}

export interface ShownReport<Line> {
  /** Of the groups together. */
  report: BillingReport;
  groups: (Group<Line> & ShownGroup)[];
  frames: readonly Frame[];
}

export function showReport<Line extends ReportLine>(parts: ReportParts<Line>): ShownReport<Line> {
  const { scope, currency, period, catalogue, groups, resources } = parts;
  const { zone, interval, startMs, endMs } = period;
  const frames = framesOf(period, catalogue.asOfMs);
  const shown = roundTree(groups, frames.length);
  const report = {
    scope,
    currency,
    timezone: zone.name,
    start: zone.format(startMs),
    end: zone.format(endMs),
    interval,
    as_of: new Date(catalogue.asOfMs).toISOString(),
    ...costsOf(frames, mergeGroups(shown, frames.length)),
    unpriced: unpricedOf(resources),
  };
  return { report, groups: shown, frames };
}

/** What a report shows of each of its groups, and of all together. */
export function costsOf(frames: readonly Frame[], group: ShownGroup): { total_cost: string; intervals: BillingBucket[] } {
  return { total_cost: decimalOf(group.totalNano), intervals: bucketsOf(frames, group) };
}

/** A bucket without what is in it. */
export type Frame = Pick<BillingBucket, 'start' | 'end' | 'partial'>;

/** The buckets of a period. Partial is one that is cut by the range, and the one in which `asOfMs` is. */
function framesOf({ zone, bounds, startsOnGrid, endsOnGrid }: BillingPeriod, asOfMs: number): Frame[] {
  const shown = bounds.map((bound) => zone.format(bound));
  const last = bounds.length - 2;
  return shown.slice(0, -1).map((start, bucket) => {
    const isRunning = (bounds[bucket] ?? 0) <= asOfMs && asOfMs < (bounds[bucket + 1] ?? 0);
    const isCut = (bucket === 0 && !startsOnGrid) || (bucket === last && !endsOnGrid);
    return { start, end: shown[bucket + 1] ?? '', partial: isRunning || isCut };
  });
}

/** Each with the items that were held in it. */
function bucketsOf(frames: readonly Frame[], { costsNano, items }: ShownGroup): BillingBucket[] {
  const shown = items.map(itemsOf);
  return frames.map((frame, bucket) => ({
    ...frame,
    cost: decimalOf(costsNano[bucket] ?? 0n),
    items: shown.flatMap((buckets) => buckets[bucket] ?? []),
  }));
}

/** By bucket; undefined where nothing was held. What is the same as in the bucket before is written once. */
function itemsOf({ kind, sku, unit, heldNano, costsNano }: ShownItem): (BillingItem | undefined)[] {
  let last: BillingItem | undefined;
  return heldNano.map((held, bucket) => {
    if (held === 0n) return undefined;
    const cost = costsNano[bucket] ?? 0n;
    if (!last || held !== heldNano[bucket - 1] || cost !== costsNano[bucket - 1]) {
      last = { kind, sku, unit, unit_hours: unitHours(held), cost: decimalOf(cost) };
    }
    return last;
  });
}

/** By kind, SKU and resource; a resource that was in several groups is one. */
function unpricedOf(resources: readonly ResourceLine[]): UnpricedUsage[] {
  const sums = new Map<string, { resource_id: string; kind: ResourceLine['kind']; sku: string; heldNano: bigint }>();
  for (const { kind, sku, timeline, unpricedNano } of resources) {
    if (unpricedNano === 0n) continue;
    const key = `${kind} ${sku} ${timeline.resourceId}`;
    const sum = sums.get(key);
    if (sum) sum.heldNano += unpricedNano;
    else sums.set(key, { resource_id: timeline.resourceId, kind, sku, heldNano: unpricedNano });
  }
  const inOrder = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  return inOrder.map(([, { resource_id, kind, sku, heldNano }]) => ({ resource_id, kind, sku, unit_hours: unitHours(heldNano) }));
}
