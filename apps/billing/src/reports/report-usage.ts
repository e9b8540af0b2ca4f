import type { UsageKind } from '@atoll/contracts/billing';
import type { Snapshot } from '@atoll/database';
import { invalidField, type AppError } from '@atoll/errors';
import { monthStarts } from '../calendar/utc-months.js';
import type { Pace } from '@atoll/waiting';
import type { Catalogue } from './catalogue.js';
import { gridOf } from './grid.js';
import { needsPrice } from './unpriced.js';
import { UnratedLines, UnratedResources, type Line, type ReportLine } from './unrated-usage.js';
import { UsageQuery, type UsageScope } from './usage-query.js';

/** What a report adds up. */
export interface UsageQuestion {
  teamNo: number;
  catalogue: Catalogue;
  /** Of the report's buckets: ascending epoch milliseconds, the first its start and the last its end. */
  bounds: readonly number[];
  /** What its groups are, where it has any besides resources. */
  groupBy?: 'workspaceId' | 'poolId';
}

/** What a report read of usage. */
export interface ReportUsage {
  /** Those that were held in the range. */
  lines: UnratedLines;
  /**
   * In the range as a whole, of each line where the groups are pools. Else up to the first price of its SKU, of those
   * that had none at first: for what had no price, and nothing besides.
   */
  resources: UnratedResources;
}

/** The lines of a workspace, of a pool, of a volume. */
export interface Group<GroupLine = ReportLine> {
  id: string;
  lines: readonly GroupLine[];
}

interface Grouping<GroupLine> {
  /** The id of a line’s group: that by which lines were read, unless given. */
  idOf?: (line: GroupLine) => string;
  /** The text that groups are sorted by: their ids, unless given. */
  orderOf?: (id: string) => string;
}

/** Lines by group. */
export async function groupsOf<GroupLine extends ReportLine>(
  lines: readonly GroupLine[],
  pace: Pace,
  { idOf = ({ group }) => group, orderOf = (id) => id }: Grouping<GroupLine> = {},
): Promise<Group<GroupLine>[]> {
  const byId = await pace.groupBy(lines, idOf);
  const groups = await pace.map([...byId], ([id, ofGroup]) => ({ id, lines: ofGroup, order: orderOf(id) }));
  return pace.toSorted(groups, (a, b) => (a.order < b.order ? -1 : 1));
}

/** Buckets × lines: a report of more takes too long to add up and to show. */
const mostCells = 200_000;
/** Resources by themselves: of more without a price a bill names the first, and of more by pool there is no bill. */
const mostResources = 200_000;

/**
 * Reads the usage of a report, all but its rating. Throws `invalid_input` that names `interval` where there would be
 * too many cells, and `end_date` where there would be too many subscriptions to pools.
 */
export class UsageReader {
  private readonly query: UsageQuery;

  constructor(snapshot: Snapshot) {
    this.query = new UsageQuery(snapshot);
  }

  async byLine(question: UsageQuestion, pace: Pace): Promise<ReportUsage> {
    const { bounds, groupBy, catalogue } = question;
    const { lines, cuts, grid, scope } = await preparationOf(question, pace);
    const usage = (changes: Awaited<ReturnType<UsageQuery['lines']>>, resourceGrid = grid): ReportUsage => ({
      lines: new UnratedLines({ lines, grid, catalogue }, changes.lines),
      resources: new UnratedResources({ lines, grid: resourceGrid, catalogue }, changes.resources),
    });
    if (!scope) return usage({ lines: [], resources: [] });
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
    return usage(changes, resourceGrid);
  }

  /** As `byLine`, of each resource by itself. */
  async byResource(question: UsageQuestion, pace: Pace): Promise<UnratedResources> {
    const { catalogue, bounds } = question;
    const { lines, grid, scope } = await preparationOf(question, pace);
    const changes = scope ? await this.query.resources(scope, grid) : [];
    await pace.turn();
    requireFewCells(changes.length, bounds);
    return new UnratedResources({ lines, grid, catalogue }, changes);
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
