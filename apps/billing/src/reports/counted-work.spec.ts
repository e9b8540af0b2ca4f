import { expect, it } from '@jest/globals';
import type { Snapshot } from '@atoll/database';
import { Pace, Turns } from '@atoll/waiting';
import { readPeriod } from '../calendar/billing-range.js';
import { largestOf, largestRemainder } from '../money/rounding.js';
import { readCatalogue, type Catalogue } from './catalogue.js';
import { FactDetails } from './fact-details.js';
import { gridOf, type Grid } from './grid.js';
import { JsonWriter } from './json-writer.js';
import { readChanges } from './quantity-changes.js';
import { rate, totalOf, unitHoursOf, type Rated } from './rated-usage.js';
import { ReportSheet } from './report-sheet.js';
import type { ReportSubject } from './report-maker.js';
import { mergeGroups, roundTree, type ShownGroup } from './rounding-tree.js';
import { unpricedOf } from './unpriced.js';
import { UnratedResources, type ResourceLine } from './unrated-usage.js';
import { UsageQuery } from './usage-query.js';
import { workspaceNames } from './workspace-names.js';

const count = 200;
const all = <T>(value: T): T[] => new Array<T>(count).fill(value);
const rated = (rest = 0): Rated => ({ wholes: all(1n), rests: new Float64Array(all(rest)), heldNano: all(1n) });
const item = { kind: 'vm', sku: 'vm.small', unit: 'vm' } as const;
const shownItem = { ...item, heldNano: all(1n), costsNano: all(1n) };
const shown: ShownGroup = { totalNano: BigInt(count), costsNano: all(1n), items: [shownItem] };
const answering = (rows: object[]) => ({ query: () => Promise.resolve(rows) }) as unknown as Snapshot;
/** A bucket an hour. */
const period = readPeriod(
  { start_date: '2026-01-01T00:00:00', end_date: '2026-01-09T08:00:00', interval: 'hourly' },
  'UTC',
);
const bounds = Array.from({ length: count + 1 }, (_, at) => at);
const sheet = (pace: Pace) =>
  ReportSheet.of('EUR', period, { catalogue: { asOfMs: 0 } } as unknown as ReportSubject, pace);
const sheetMade = await sheet(new Pace(new Turns()));

/** What is done for each of `count` figures, so many times. */
const works: [string, number, (pace: Pace) => Promise<unknown>][] = [
  ['rounding parts that are whole', 1, (pace) => largestRemainder(BigInt(count), all(1n), all(0), pace)],
  ['finding the largest rests', 2, (pace) => largestOf(all(1), 5, pace)],
  ['adding up costs', 1, (pace) => totalOf(rated(), pace)],
  // Its total, and the costs of its buckets.
  ['rounding a group of one item', 2, (pace) => roundTree([{ lines: [{ ...item, ...rated() }] }], pace)],
  // The same; and two items are added up.
  [
    'rounding a group of two items',
    4,
    (pace) => roundTree([{ lines: [rated(), rated()].map((one) => ({ ...item, ...one })) }], pace),
  ],
  // The same; and in each bucket the rests of two items are one more.
  [
    'rounding items whose rests come to more',
    6,
    (pace) => roundTree([{ lines: [rated(1.8e15), rated(1.8e15)].map((one) => ({ ...item, ...one })) }], pace),
  ],
  // Of each of two groups its costs, and of its item what was held and what it costs.
  ['merging groups', 6, (pace) => mergeGroups([shown, shown], pace)],
  [
    'reading changes',
    1,
    (pace) =>
      readChanges(
        bounds
          .slice(1)
          .map((at) => `${at} 1 0 0`)
          .join(' '),
        count,
        pace,
      ),
  ],
  ['cutting a grid', 2, (pace) => gridOf(bounds, [], count, pace)],
  [
    'rating usage',
    1,
    (pace) =>
      rate(
        { deltasNano: all(undefined), momentsNano: all(undefined) },
        { bounds, lengthsMs: all(1), buckets: all(0), bucketCount: 1 },
        all(1n),
        pace,
      ),
  ],
  ['adding up what was held', 1, (pace) => unitHoursOf([rated()], pace)],
  ['looking for usage without a price', 1, (pace) => unpricedOf(all({ unpricedNano: 0n } as ResourceLine), pace)],
  ['writing a list', 1, (pace) => new JsonWriter().list(all(1), pace, () => undefined)],
  ['writing the starts of buckets', 1, sheet],
  [
    'writing the costs of two items',
    2,
    (pace) => sheetMade['writeCosts'](new JsonWriter(), { ...shown, items: [shownItem, shownItem] }, pace),
  ],
  [
    'reading the catalogue',
    1,
    (pace) => readCatalogue(answering(all({ what: 'unit', value: { sku: 'vm', unit: 'vm' } })), '', pace),
  ],
  [
    'reading lines and resources',
    1,
    async (pace) => {
      const grid = await gridOf([0, 1], [], 1, new Pace(new Turns()));
      const scope = { teamNo: 1, fromMs: 0, upToMs: 1, seriesNos: [], lines: [] };
      return new UsageQuery(answering(all({ line: 0 }))).lines(
        scope,
        grid,
        { grid, lines: [{ no: 0, untilMs: 1 }], most: 1 },
        pace,
      );
    },
  ],
  [
    'naming resources',
    1,
    (pace) => {
      const by = { lines: [{ ...item, group: '' }], grid: {} as Grid, catalogue: {} as Catalogue };
      return new UnratedResources(by, all({ line: 0, resourceId: 'vm:1', changes: '' })).placed(pace);
    },
  ],
  ['reading names', 1, (pace) => workspaceNames(answering(all({ id: 'a', name: 'b' })), ['a'], pace)],
  [
    'reading what is known of pools',
    1,
    (pace) => new FactDetails(answering(all({ poolId: '1' }))).pools(1, all('1'), pace),
  ],
  [
    'reading what is known of volumes',
    1,
    (pace) => new FactDetails(answering([])).resources(1, all({ id: '1', resourceId: 'volume:1' }), pace),
  ],
];

/** Each item fills its slice. */
class FullAtOnce extends Pace {
  counted = 0;
  /** Slices that are full, of which no end has come. */
  full = 0;
  override isFull(items = 1): boolean {
    this.counted += items;
    this.full += 1;
    return true;
  }
  override turn(): Promise<void> {
    this.full -= 1;
    return Promise.resolve();
  }
}

it.each(works)(
  '%s counts each figure that it works on (%i times), and ends each slice that is full, so that others get their turns',
  async (_, times, work) => {
    const pace = new FullAtOnce(new Turns());
    await work(pace);
    expect([Math.floor(pace.counted / count), pace.full]).toEqual([times, 0]);
  },
);
