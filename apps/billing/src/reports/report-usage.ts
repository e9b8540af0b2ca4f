import type { UsageKind } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { monthStarts } from '../calendar/utc-months.js';
import type { Catalogue } from './catalogue.js';
import { gridOf, type Grid } from './grid.js';
import { rate, type RatedUsage } from './rated-usage.js';
import { Resources, type Timeline } from './resources.js';
import { readChanges, UsageQuery, type LineChanges, type ResourceChanges, type UsageScope } from './usage-query.js';

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
  /** The id of what the groups are; empty where there are none. */
  group: string;
  kind: UsageKind;
  sku: string;
  unit: string | null;
}

/** What a group held of a SKU, by bucket. */
export type ReportLine = Line & RatedUsage;
/** What one resource held of a SKU in a group. */
export type ResourceLine = ReportLine & { timeline: Timeline };

export interface ReportUsage {
  /** Those that were held in the range, by kind, then SKU. */
  lines: ReportLine[];
  /** In the range as a whole: of each line where the groups are pools, and else of those that had no price at first. */
  resources: ResourceLine[];
}

/** The lines of a workspace, of a pool, of a volume. */
export interface Group<GroupLine = ReportLine> {
  id: string;
  lines: readonly GroupLine[];
}

/** Lines by group. `orderOf` gives the text that groups are sorted by; their ids, unless given. */
export function groupsOf<GroupLine extends ReportLine>(
  lines: readonly GroupLine[],
  orderOf = (id: string): string => id,
): Group<GroupLine>[] {
  const groups = Map.groupBy(lines, ({ group }) => group);
  return [...groups].map(([id, ofGroup]) => ({ id, lines: ofGroup })).sort((a, b) => (orderOf(a.id) < orderOf(b.id) ? -1 : 1));
}

/** Buckets × lines: a report of more takes too long to add up and to show. */
const mostCells = 200_000;

/** Reads the usage of a report, and rates it. Throws `invalid_input` that names `interval` where there would be too many cells. */
@Injectable()
export class UsageReader {
  constructor(
    private readonly query: UsageQuery,
    private readonly resources: Resources,
  ) {}

  async byLine(question: UsageQuestion): Promise<ReportUsage> {
    const { bounds, groupBy, catalogue } = question;
    const { lines, cuts, grid, scope } = preparationOf(question);
    if (!scope) return { lines: [], resources: [] };
    const { fromMs, upToMs } = scope;
    const isWanted = ({ sku }: Line) => groupBy === 'poolId' || catalogue.prices.get(sku)?.isMissingAt(fromMs);
    const resourceLines = lines.flatMap((line, no) => (isWanted(line) ? [no] : []));
    const resourceGrid = gridOf([fromMs, upToMs], [...cuts, ...monthStarts(fromMs, upToMs)], upToMs);
    const changes = await this.query.lines(scope, grid, resourceGrid, resourceLines);
    requireFewCells(changes.lines.length, bounds);
    return {
      lines: inOrder(changes.lines).map(raterOf(lines, grid, catalogue)),
      resources: await this.rateResources(changes.resources, raterOf(lines, resourceGrid, catalogue)),
    };
  }

  /** As `byLine`, with each resource as a group. */
  async byResource(question: UsageQuestion): Promise<ResourceLine[]> {
    const { lines, grid, scope } = preparationOf(question);
    if (!scope) return [];
    const changes = await this.query.resources(scope, grid);
    requireFewCells(changes.length, question.bounds);
    const rated = await this.rateResources(changes, raterOf(lines, grid, question.catalogue));
    return rated.map((line) => ({ ...line, group: line.timeline.resourceId }));
  }

  private async rateResources(changes: ResourceChanges[], rater: (changes: LineChanges) => ReportLine): Promise<ResourceLine[]> {
    const timelines = await this.resources.timelines(changes.map(({ timelineNo }) => timelineNo));
    return inOrder(changes).flatMap((change) => {
      const timeline = timelines.get(change.timelineNo);
      return timeline ? [{ ...rater(change), timeline }] : [];
    });
  }
}

/** The lines that the series come to, by kind, then SKU; and what to read, unless there is nothing to. */
function preparationOf({ teamNo, catalogue, bounds, groupBy }: UsageQuestion) {
  const { series, prices, units, asOfMs } = catalogue;
  const lineKeys = series.map((one) => `${one.kind} ${one.sku} ${(groupBy && one[groupBy]) ?? ''}`);
  const keys = [...new Set(lineKeys)].sort();
  const lineNos = new Map(keys.map((key, no) => [key, no]));
  const lines = keys.map((key): Line => {
    const [kind = '', sku = '', group = ''] = key.split(' ');
    return { group, kind: kind as UsageKind, sku, unit: units.get(sku) ?? null };
  });
  const cuts = [...prices.values()].flatMap(({ changesMs }) => changesMs);
  const grid = gridOf(bounds, cuts, asOfMs);
  const [fromMs, upToMs] = [grid.bounds[0], grid.bounds.at(-1)];
  const seriesNos = series.map(({ no }) => no);
  const isEmpty = fromMs === undefined || upToMs === undefined || series.length === 0;
  const scope: UsageScope | undefined = isEmpty
    ? undefined
    : { teamNo, fromMs, upToMs, seriesNos, lines: lineKeys.map((key) => lineNos.get(key) ?? 0) };
  return { lines, cuts, grid, scope };
}

/** The prices of a SKU over the grid are looked up once for all that hold it. */
function raterOf(lines: readonly Line[], grid: Grid, { prices }: Catalogue): (changes: LineChanges) => ReportLine {
  const pricesOver = new Map<string, (bigint | undefined)[]>();
  return (changes) => {
    const line = lines[changes.line];
    if (!line) throw new RangeError('A line that was not asked for.');
    const over = pricesOver.get(line.sku) ?? prices.get(line.sku)?.over(grid) ?? [];
    pricesOver.set(line.sku, over);
    return { ...line, ...rate(readChanges(changes, grid), grid, over) };
  };
}

function inOrder<Changes extends LineChanges>(changes: readonly Changes[]): Changes[] {
  return changes.toSorted((a, b) => a.line - b.line);
}

function requireFewCells(lineCount: number, bounds: readonly number[]): void {
  const cells = lineCount * (bounds.length - 1);
  if (cells <= mostCells) return;
  const message = `interval must be longer, or the range shorter: this makes ${cells} cells (intervals × groups × items), and at most ${mostCells} are shown`;
  throw new AppError('invalid_input', `${message}.`, { errors: [{ path: 'interval', code: 'mostCells', message }] });
}
