import { numberList, type Snapshot } from '@atoll/database';
import { startOfMonth } from '../calendar/utc-months.js';
import { nanoPerUnit } from '../money/amounts.js';
import type { Pace } from '@atoll/waiting';
import type { Grid } from './grid.js';

/** Whose usage is added up: `fromMs` ≤ time < `upToMs`, of the series named, each counted to a line of the report. */
export interface UsageScope {
  teamNo: number;
  fromMs: number;
  upToMs: number;
  seriesNos: readonly number[];
  /** Of each series: the number of its line. */
  lines: readonly number[];
}

/** Of which lines each resource is asked for by itself. */
export interface ResourceScope {
  /** As the report as a whole. */
  grid: Grid;
  /** The numbers of the lines, and of each line the time from which its changes do not matter. */
  lines: readonly { no: number; untilMs: number }[];
  /** How many are read, the first by line and then by when they were first told of. */
  most: number;
}

/** How the quantity of a line changes over a grid. */
export interface LineChanges {
  line: number;
  /** For `readChanges`, of the same grid. */
  changes: string;
}

/** How the quantity that one resource holds of a line’s SKU changes over a grid. */
export interface ResourceChanges extends LineChanges {
  resourceId: string;
}

/**
 * The statements that read segments: those that touch the range, however old the team is. No interval of a grid may be
 * longer than a month.
 */
export class UsageQuery {
  constructor(private readonly snapshot: Snapshot) {}

  /** Of each line over `grid`, and besides of resources over a grid of theirs. */
  async lines(
    scope: UsageScope,
    grid: Grid,
    ofResources: ResourceScope,
    pace: Pace,
  ): Promise<{ lines: LineChanges[]; resources: ResourceChanges[] }> {
    const values = valuesOf(scope, grid);
    const asked = ofResources.lines;
    if (asked.length === 0) return { lines: await this.snapshot.query(lineStatement, values), resources: [] };
    const [nos, untils] = [asked.map(({ no }) => no), asked.map(({ untilMs }) => untilMs)];
    values.push(numberList(ofResources.grid.bounds), numberList(nos), numberList(untils), ofResources.most);
    const rows = await this.snapshot.query<LineChanges | ResourceChanges>(bothStatement, values);
    const [lines, resources]: [LineChanges[], ResourceChanges[]] = [[], []];
    for (const row of rows) {
      if (isOfResource(row)) resources.push(row);
      else lines.push(row);
      if (pace.isFull()) await pace.turn();
    }
    return { lines, resources };
  }

  /** Of each resource over `grid`. */
  async resources(scope: UsageScope, grid: Grid): Promise<ResourceChanges[]> {
    return this.snapshot.query<ResourceChanges>(resourceStatement, valuesOf(scope, grid));
  }
}

/**
 * Each segment of the scope, cut to its time, is a rise at its start and a fall at its end. Segments end with UTC
 * months at the latest, so no segment of an earlier month touches the range. What ends with the range need not fall.
 */
const changes = `
  WITH wanted AS (SELECT * FROM unnest($5::integer[], $6::integer[]) AS wanted (series_no, line)),
  piece AS (
    SELECT line, timeline_no, greatest(start_ms, $2::bigint) AS start_ms, end_ms, quantity_nano
      FROM segment JOIN wanted USING (series_no)
      WHERE team_no = $1 AND start_ms >= $4::bigint AND start_ms < $3::bigint AND end_ms > $2
    UNION ALL
    SELECT line, timeline_no, greatest(start_ms, $2), $3, quantity_nano
      FROM open_segment JOIN wanted USING (series_no)
      WHERE team_no = $1 AND start_ms < $3
  ),
  change AS (
    SELECT line, timeline_no, start_ms AS at_ms, quantity_nano FROM piece
    UNION ALL
    SELECT line, timeline_no, end_ms, -quantity_nano FROM piece WHERE end_ms < $3
  )`;

/**
 * Whole units and the 10^-9 beyond them are multiplied with time apart: each product is below 2^63, for a quantity is
 * at most 10^9 units and an interval at most a month. One row a key, because reading thousands of rows takes longer
 * than making them. OFFSET 0 keeps PostgreSQL from looking up the interval once for each place that names it.
 */
const sums = (timelineNo: string, resourceId: string, bounds: string, where = '') => `
  SELECT line, ${resourceId} AS "resourceId", string_agg(concat_ws(' ', interval_no, delta, units, nano), ' ') AS changes
  FROM (
    SELECT line, ${timelineNo} AS timeline_no, interval_no, sum(quantity_nano) AS delta,
      sum(quantity_nano / ${nanoPerUnit} * (at_ms - (${bounds}::bigint[])[interval_no])) AS units,
      sum(quantity_nano % ${nanoPerUnit} * (at_ms - (${bounds}::bigint[])[interval_no])) AS nano
    FROM (SELECT *, width_bucket(at_ms, ${bounds}::bigint[]) AS interval_no FROM change ${where} OFFSET 0) AS placed
    GROUP BY line, 2, interval_no
  ) AS summed
  GROUP BY line, timeline_no`;

const sumsOfResources = (bounds: string, where = '') =>
  sums('timeline_no', '(SELECT resource_id FROM timeline WHERE no = timeline_no)', bounds, where);
const lineStatement = changes + sums('NULL::integer', 'NULL::text', '$7');
const resourceStatement = changes + sumsOfResources('$7');
const isAsked =
  'JOIN unnest($9::integer[], $10::bigint[]) AS asked (line, until_ms) USING (line) WHERE at_ms < until_ms';
const bothStatement = `${lineStatement} UNION ALL (${sumsOfResources('$8', isAsked)} ORDER BY line, timeline_no LIMIT $11)`;

function isOfResource(row: LineChanges | ResourceChanges): row is ResourceChanges {
  return 'resourceId' in row && row.resourceId !== null;
}

function valuesOf({ teamNo, fromMs, upToMs, seriesNos, lines }: UsageScope, grid: Grid): unknown[] {
  return [
    teamNo,
    fromMs,
    upToMs,
    startOfMonth(fromMs),
    numberList(seriesNos),
    numberList(lines),
    numberList(grid.bounds),
  ];
}
