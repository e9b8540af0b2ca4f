import type { BillingReport } from '@atoll/contracts/billing';
import type { Json } from '@atoll/rpc';
import type { BillingPeriod } from '../calendar/billing-range.js';
import { longestDecimal, putDecimal } from '../money/decimal-bytes.js';
import type { Pace } from '@atoll/waiting';
import { JsonWriter } from './json-writer.js';
import { hoursNano } from './rated-usage.js';
import type { ReportSubject } from './report-maker.js';
import type { ResourceLine } from './unrated-usage.js';
import { mergeGroups, type ShownGroup, type ShownItem } from './rounding-tree.js';
import { unpricedOf } from './unpriced.js';

/** The fields that `writeCosts` writes. */
type Costs = 'total_cost' | 'intervals';

/** The fields of a group before its costs. */
export type Head<Billed> = Omit<Billed, Costs>;

/** What a report shows of each of its groups, beside its costs. */
interface Listing<Group> {
  readonly name: string;
  readonly headOf: (group: Group) => object | Promise<object>;
  /** Writes the fields after the costs. */
  readonly writeRest?: (writer: JsonWriter, group: Group) => Promise<void>;
}

/**
 * What a report shows, but for its figures: made while the database adds those up. A report may have hundreds of
 * thousands of items, so their JSON is written straight from the figures.
 */
export class ReportSheet {
  private constructor(
    private readonly currency: string,
    private readonly period: BillingPeriod,
    private readonly subject: ReportSubject,
    private readonly starts: BucketStarts,
  ) {}

  static async of(currency: string, period: BillingPeriod, subject: ReportSubject, pace: Pace): Promise<ReportSheet> {
    return new ReportSheet(currency, period, subject, await bucketStarts(period, subject.catalogue.asOfMs, pace));
  }

  /** The report: the fields that every one has, of its groups together, and the list of these. */
  async report<Report, Group extends ShownGroup>(
    groups: readonly Group[],
    resources: readonly ResourceLine[],
    pace: Pace,
    list?: Listing<Group>,
  ): Promise<Json<Report>> {
    const writer = new JsonWriter();
    const { zone, interval, startMs, endMs } = this.period;
    const { scope, catalogue } = this.subject;
    const head: Omit<Head<BillingReport>, 'unpriced'> = {
      scope,
      currency: this.currency,
      timezone: zone.name,
      start: zone.format(startMs),
      end: zone.format(endMs),
      interval,
      as_of: new Date(catalogue.asOfMs).toISOString(),
    };
    writer.startObject(head);
    await this.writeCosts(writer, await mergeGroups(groups, pace), pace);
    writer.text(',"unpriced":');
    await writer.list(await unpricedOf(resources, pace), pace, (unpriced) => writer.value(unpriced));
    if (list) {
      writer.text(`,"${list.name}":`);
      await writer.list(groups, pace, async (group) => {
        writer.startObject(await list.headOf(group));
        await this.writeCosts(writer, group, pace);
        await list.writeRest?.(writer, group);
        writer.text('}');
      });
    }
    writer.text('}');
    return writer.end();
  }

  /** The fields `total_cost` and `intervals`, after others. */
  private async writeCosts(writer: JsonWriter, { totalNano, costsNano, items }: ShownGroup, pace: Pace): Promise<void> {
    writer.text(',"total_cost":"');
    writer.decimal(totalNano);
    writer.text('","intervals":[');
    const cells = items.map((item) => new ItemCells(item));
    const { json, ends } = this.starts;
    for (let bucket = 0, from = 0; bucket < ends.length; bucket += 1) {
      const to = ends[bucket] ?? from;
      writer.bytes(json, from, to);
      from = to;
      writer.decimal(costsNano[bucket] ?? 0n);
      writer.bytes(beforeItems);
      let afterComma = comma.length;
      for (const cell of cells) {
        const item = cell.jsonOf(bucket);
        if (item.length > 0) {
          writer.bytes(item, afterComma);
          afterComma = 0;
        }
        if (pace.isFull()) await pace.turn();
      }
    }
    writer.text(ends.length > 0 ? `${behindItems}]` : ']');
  }
}

const comma = ',';
const behindItems = ']}';
const [beforeItems, beforeHours, beforeCost, behindCost] = ['","items":[', ',"unit_hours":', ',"cost":"', '"}'].map(
  (text) => Buffer.from(text),
) as [Buffer, Buffer, Buffer, Buffer];
const nothing = Buffer.alloc(0);

/** The JSON of each bucket up to its cost, with what ends the one before, one after the other. */
interface BucketStarts {
  json: Buffer;
  /** Where each of them ends. */
  ends: readonly number[];
}

/** Partial is a bucket that is cut by the range, and the one in which `asOfMs` is. */
async function bucketStarts(period: BillingPeriod, asOfMs: number, pace: Pace): Promise<BucketStarts> {
  const { zone, bounds, startsOnGrid, endsOnGrid } = period;
  const last = bounds.length - 2;
  const writer = new JsonWriter();
  const ends: number[] = [];
  let start = zone.format(bounds[0] ?? 0);
  for (let bucket = 0; bucket <= last; bucket += 1) {
    const [startMs = 0, endMs = 0] = [bounds[bucket], bounds[bucket + 1]];
    const end = zone.format(endMs);
    const isRunning = startMs <= asOfMs && asOfMs < endMs;
    const isCut = (bucket === 0 && !startsOnGrid) || (bucket === last && !endsOnGrid);
    writer.text(
      `${bucket > 0 ? `${behindItems},` : ''}{"start":"${start}","end":"${end}","partial":${isRunning || isCut},"cost":"`,
    );
    ends.push(writer.byteLength);
    start = end;
    if (pace.isFull()) await pace.turn();
  }
  return { json: Buffer.concat(writer.end().parts), ends };
}

/**
 * A comma and the JSON of an item, by bucket; empty where nothing was held. What is as in the bucket before is not
 * written again.
 */
class ItemCells {
  private readonly bytes: Buffer;
  private readonly start: number;
  private lastHeldNano = 0n;
  private lastCostNano = 0n;
  private json: Buffer = nothing;

  constructor(private readonly item: ShownItem) {
    const { kind, sku, unit } = item;
    const start = Buffer.from(comma + JSON.stringify({ kind, sku, unit }).slice(0, -1));
    this.start = start.length + beforeHours.length;
    this.bytes = Buffer.alloc(this.start + beforeCost.length + behindCost.length + 2 * longestDecimal);
    this.bytes.set(start);
    this.bytes.set(beforeHours, start.length);
  }

  /** Holds until it is asked for another bucket. */
  jsonOf(bucket: number): Buffer {
    const held = this.item.heldNano[bucket] ?? 0n;
    const costNano = this.item.costsNano[bucket] ?? 0n;
    if (held === this.lastHeldNano && costNano === this.lastCostNano) return this.json;
    this.lastHeldNano = held;
    this.lastCostNano = costNano;
    this.json = held === 0n ? nothing : this.write(hoursNano(held), costNano);
    return this.json;
  }

  private write(heldHoursNano: bigint, costNano: bigint): Buffer {
    const { bytes } = this;
    let at = putDecimal(bytes, this.start, heldHoursNano);
    bytes.set(beforeCost, at);
    at = putDecimal(bytes, at + beforeCost.length, costNano);
    bytes.set(behindCost, at);
    return bytes.subarray(0, at + behindCost.length);
  }
}
