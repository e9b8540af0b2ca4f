import type { BillingBucket, BillingReport } from '@atoll/contracts';
import { Json, type JsonFields } from '@atoll/rpc';
import type { BillingPeriod } from '../calendar/billing-range.js';
import { decimalOf } from '../money/amounts.js';
import { hoursNano } from './rated-usage.js';
import type { ReportSubject } from './report-access.js';
import type { ResourceLine } from './report-usage.js';
import { mergeGroups, type ShownGroup, type ShownItem } from './rounding-tree.js';
import { unpricedOf } from './unpriced.js';

/**
 * What a report shows, but for its figures: made while the database adds those up. A report may have tens of thousands of items, so buckets
 * are written straight as JSON.
 */
export class ReportSheet {
  /** Of each bucket: its JSON up to the cost. */
  private readonly buckets: readonly string[];

  constructor(
    private readonly currency: string,
    private readonly period: BillingPeriod,
    private readonly subject: ReportSubject,
  ) {
    this.buckets = bucketStarts(period, subject.catalogue.asOfMs);
  }

  /** The fields that every report has: of its groups together. */
  report(groups: readonly ShownGroup[], resources: readonly ResourceLine[]): JsonFields<BillingReport> {
    const { zone, interval, startMs, endMs } = this.period;
    const { scope, catalogue } = this.subject;
    return {
      scope,
      currency: this.currency,
      timezone: zone.name,
      start: zone.format(startMs),
      end: zone.format(endMs),
      interval,
      as_of: new Date(catalogue.asOfMs).toISOString(),
      ...this.costs(mergeGroups(groups)),
      unpriced: unpricedOf(resources),
    };
  }

  costs({ totalNano, costsNano, items }: ShownGroup): { total_cost: string; intervals: Json<BillingBucket[]> } {
    const writers = items.map(itemWriter);
    let intervals = '';
    for (let bucket = 0; bucket < this.buckets.length; bucket += 1) {
      let written = '';
      for (const write of writers) {
        const item = write(bucket);
        if (item) written += written ? `,${item}` : item;
      }
      intervals += `${intervals && ','}${this.buckets[bucket]}${decimalOf(costsNano[bucket] ?? 0n)}","items":[${written}]}`;
    }
    return { total_cost: decimalOf(totalNano), intervals: new Json(`[${intervals}]`) };
  }
}

/** Partial is a bucket that is cut by the range, and the one in which `asOfMs` is. */
function bucketStarts({ zone, bounds, startsOnGrid, endsOnGrid }: BillingPeriod, asOfMs: number): string[] {
  const shown = bounds.map((bound) => zone.format(bound));
  const last = bounds.length - 2;
  return bounds.slice(0, -1).map((startMs, bucket) => {
    const isRunning = startMs <= asOfMs && asOfMs < (bounds[bucket + 1] ?? 0);
    const isCut = (bucket === 0 && !startsOnGrid) || (bucket === last && !endsOnGrid);
    return `{"start":"${shown[bucket]}","end":"${shown[bucket + 1]}","partial":${isRunning || isCut},"cost":"`;
  });
}

/** Gives the JSON of an item by bucket; none where nothing was held. What is as in the bucket before is not written again. */
function itemWriter({ kind, sku, unit, heldNano, costsNano }: ShownItem): (bucket: number) => string {
  const start = JSON.stringify({ kind, sku, unit }).slice(0, -1);
  let lastHeldNano = 0n;
  let lastCostNano = 0n;
  let written = '';
  return (bucket) => {
    const held = heldNano[bucket] ?? 0n;
    const costNano = costsNano[bucket] ?? 0n;
    if (held === lastHeldNano && costNano === lastCostNano) return written;
    lastHeldNano = held;
    lastCostNano = costNano;
    written = held === 0n ? '' : `${start},"unit_hours":${decimalOf(hoursNano(held))},"cost":"${decimalOf(costNano)}"}`;
    return written;
  };
}
