import type { UsageKind } from '@atoll/contracts/billing';
import { invalidField, type AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { monthStarts } from '../calendar/utc-months.js';
import type { Pace } from '@atoll/waiting';
import type { Catalogue } from './catalogue.js';
import { gridOf, type Grid } from './grid.js';
import { readChanges } from './quantity-changes.js';
import { rate, type RatedUsage } from './rated-usage.js';
import { needsPrice } from './unpriced.js';
import { UsageQuery, type LineChanges, type ResourceChanges, type UsageScope } from './usage-query.js';

/** What a report adds up. */
export interface UsageQuestion {
  teamNo: number;
  catalogue: Catalogue;
  /** Of the report's buckets: ascending epoch milliseconds, the first its start and the last its end. */
  bounds: readonly number[];
  /** What its groups are, where it has any besides resources. */
  groupBy?: 'workspaceId' | 'poolId';
}

interface Line {
  /** The id field of the groups; empty if there are none. */
  group: string;
  kind: UsageKind;
  sku: string;
  unit: string | null;
}

/** What a group held of a SKU, by bucket. */
export type ReportLine = Line & RatedUsage;
/** What one resource held of a SKU in a group. */
export type ResourceLine = ReportLine & { resourceId: string };

export interface ReportUsage {
  /** Those that were held in the range, by kind, then SKU. */
  lines: ReportLine[];
  /**
   * In the range as a whole, of each line where the groups are pools. Else up to the first price of its SKU, of those
   * that had none at first: for what had no price, and nothing besides.
   */
  resources: ResourceLine[];
}

/** The lines of a workspace, of a pool, of a volume. */
export interface Group<GroupLine = ReportLine> {
  id: string;
  lines: readonly GroupLine[];
}

/** Lines by group. `orderOf` gives the text that groups are sorted by; their ids, unless given. */
export async function groupsOf<GroupLine extends ReportLine>(
  lines: readonly GroupLine[],
  pace: Pace,
  orderOf = (id: string): string => id,
): Promise<Group<GroupLine>[]> {
  const byId = await pace.groupBy(lines, ({ group }) => group);
  const groups = await pace.map([...byId], ([id, ofGroup]) => ({ id, lines: ofGroup, order: orderOf(id) }));
  return pace.toSorted(groups, (a, b) => (a.order < b.order ? -1 : 1));
}

/** Buckets × lines: a report of more takes too long to add up and to show. */
const mostCells = 200_000;
/** Resources by themselves: of more without a price a bill names the first, and of more by pool there is no bill. */
const mostResources = 200_000;

/**
 * Reads the usage of a report, and rates it. Throws `invalid_input` that names `interval` where there would be too many
 * cells, and `end_date` where there would be too many subscriptions to pools.
 */
@Injectable()
export class UsageReader {
  constructor(private readonly query: UsageQuery) {}

  async byLine(question: UsageQuestion, pace: Pace): Promise<ReportUsage> {
    const { bounds, groupBy, catalogue } = question;
    const { lines, cuts, grid, scope } = await preparationOf(question, pace);
    if (!scope) return { lines: [], resources: [] };
    const { fromMs, upToMs } = scope;
    const isByPool = groupBy === 'poolId';
    const untilMs = ({ kind, sku }: Line) => {
      if (isByPool) return upToMs;
      return needsPrice(kind) ? Math.min(catalogue.prices.get(sku)?.beginsMs ?? upToMs, upToMs) : fromMs;
    };
    const resourceLines = lines.map((line, no) => ({ no, untilMs: untilMs(line) }));
    const resourceGrid = await gridOf([fromMs, upToMs], [...cuts, ...monthStarts(fromMs, upToMs)], upToMs, pace);
    const ofResources = {
      grid: resourceGrid,
      lines: resourceLines.filter((line) => line.untilMs > fromMs),
      most: isByPool ? mostResources + 1 : mostResources,
    };
    const changes = await this.query.lines(scope, grid, ofResources, pace);
    await pace.turn();
    requireFewCells(changes.lines.length, bounds);
    if (changes.resources.length > mostResources) throw tooManySubscriptions();
    const ratedLines = new Rater(lines, grid, catalogue);
    const ratedResources = new Rater(lines, resourceGrid, catalogue);
    return {
      lines: await ratedLines.rate(changes.lines, pace),
      resources: await ratedResources.rateResources(changes.resources, pace),
    };
  }

  /**
   * As `byLine`, with each resource as a group, whose id is the resource's; with `groupBy` that of its workspace or
   * pool, a space, and the resource's.
   */
  async byResource(question: UsageQuestion, pace: Pace): Promise<ResourceLine[]> {
    const { lines, grid, scope } = await preparationOf(question, pace);
    if (!scope) return [];
    const changes = await this.query.resources(scope, grid);
    await pace.turn();
    requireFewCells(changes.length, question.bounds);
    const rated = await new Rater(lines, grid, question.catalogue).rateResources(changes, pace);
    const isWithin = question.groupBy !== undefined;
    return pace.map(rated, (line) => ({
      ...line,
      group: isWithin ? `${line.group} ${line.resourceId}` : line.resourceId,
    }));
  }
}

/** The lines that the series come to, by kind, then SKU; and what to read, unless there is nothing to. */
async function preparationOf({ teamNo, catalogue, bounds, groupBy }: UsageQuestion, pace: Pace) {
  const { series, prices, units, asOfMs } = catalogue;
  const lineKeys = await pace.map(series, (one) => `${one.kind} ${one.sku} ${(groupBy && one[groupBy]) ?? ''}`);
  const keys = await pace.toSorted([...new Set(lineKeys)], (a, b) => (a < b ? -1 : 1));
  const lineNos = new Map(keys.map((key, no) => [key, no]));
  const lines = await pace.map(keys, (key): Line => {
    const [kind = '', sku = '', group = ''] = key.split(' ');
    return { group, kind: kind as UsageKind, sku, unit: units.get(sku) ?? null };
  });
  const cuts = [...prices.values()].flatMap(({ changesMs }) => changesMs);
  const grid = await gridOf(bounds, cuts, asOfMs, pace);
  const [fromMs, upToMs] = [grid.bounds[0], grid.bounds.at(-1)];
  const seriesNos = series.map(({ no }) => no);
  const isEmpty = fromMs === undefined || upToMs === undefined || series.length === 0;
  const scope: UsageScope | undefined = isEmpty
    ? undefined
    : { teamNo, fromMs, upToMs, seriesNos, lines: lineKeys.map((key) => lineNos.get(key) ?? 0) };
  return { lines, cuts, grid, scope };
}

/** Rates the changes of lines over a grid. The prices of a SKU are looked up once for all that hold it. */
class Rater {
  private readonly prices = new Map<string, (bigint | undefined)[]>();

  constructor(
    private readonly lines: readonly Line[],
    private readonly grid: Grid,
    private readonly catalogue: Catalogue,
  ) {}

  /** By line. */
  async rate(all: readonly LineChanges[], pace: Pace): Promise<ReportLine[]> {
    const rated: ReportLine[] = [];
    for (const changes of await pace.toSorted(all, (a, b) => a.line - b.line))
      rated.push(await this.rateOne(changes, pace));
    return rated;
  }

  /** By line. */
  async rateResources(all: readonly ResourceChanges[], pace: Pace): Promise<ResourceLine[]> {
    const rated: ResourceLine[] = [];
    for (const changes of await pace.toSorted(all, (a, b) => a.line - b.line)) {
      rated.push({ ...(await this.rateOne(changes, pace)), resourceId: changes.resourceId });
    }
    return rated;
  }

  private async rateOne({ line: no, changes }: LineChanges, pace: Pace): Promise<ReportLine> {
    const line = this.lines[no];
    if (!line) throw new RangeError('A line that was not asked for.');
    const prices =
      this.prices.get(line.sku) ?? (await this.catalogue.prices.get(line.sku)?.over(this.grid, pace)) ?? [];
    this.prices.set(line.sku, prices);
    const read = await readChanges(changes, this.grid.lengthsMs.length, pace);
    return { ...line, ...(await rate(read, this.grid, prices, pace)) };
  }
}

function requireFewCells(lineCount: number, bounds: readonly number[]): void {
  const cells = lineCount * (bounds.length - 1);
  if (cells <= mostCells) return;
  const excess = `this makes ${cells} cells (intervals × groups × items), and at most ${mostCells} are shown`;
  throw invalidField('interval', 'mostCells', `must be longer, or the range shorter: ${excess}`);
}

function tooManySubscriptions(): AppError {
  const excess = `more than ${mostResources} subscriptions to pools are in the range, and at most so many are shown`;
  return invalidField('end_date', 'mostResources', `must be earlier: ${excess}`);
}
