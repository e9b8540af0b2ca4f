import type { UsageKind } from '@atoll/contracts/billing';
import type { Snapshot } from '@atoll/database';
import { invalidField } from '@atoll/errors';
import type { Pace } from '@atoll/waiting';
import { PriceHistory, type PriceRow } from './price-history.js';

/** Which of a team's usage a report is of. */
export interface CatalogueFilter {
  workspaceId?: string;
  kinds?: readonly UsageKind[];
  /** A number, as text. */
  regionId?: string;
  /** An instant up to which usage is counted, not in the future; the present unless given. */
  asOf?: string | undefined;
}

/** What usage is of, all but the resource. */
interface Series {
  no: number;
  workspaceId: string;
  kind: UsageKind;
  sku: string;
  poolId: string | null;
}

/** What a team ever held, and what that costs it. */
export interface Catalogue {
  /** By the database’s clock: usage is counted up to here. Epoch milliseconds. */
  asOfMs: number;
  /** Null for a team that has not been heard of here. */
  teamNo: number | null;
  /** False for a region in the filter that no event and no fact has named. */
  isRegionKnown: boolean;
  series: Series[];
  /** By SKU; each that the series have is there. */
  prices: ReadonlyMap<string, PriceHistory>;
  /** By SKU; none for one that never had a price. */
  units: ReadonlyMap<string, string>;
}

/** One row for each thing that was found, so that none of them is read in one go with all others. */
type CatalogueRow =
  | { what: 'reading'; value: Pick<Catalogue, 'asOfMs' | 'teamNo' | 'isRegionKnown'> }
  | { what: 'series'; value: Series }
  | { what: 'price'; value: PriceRow }
  | { what: 'unit'; value: { sku: string; unit: string } };

const catalogueStatement = `
  WITH held AS MATERIALIZED (
    SELECT * FROM series
    WHERE team_no = (SELECT no FROM team WHERE id = $1)
      AND ($2::uuid IS NULL OR workspace_id = $2) AND ($3::text[] IS NULL OR kind = ANY ($3)) AND ($4::bigint IS NULL OR region_id = $4)
  )
  SELECT 'reading' AS what, json_build_object('asOfMs', floor(extract(epoch FROM clock_timestamp()) * 1000),
    'teamNo', (SELECT no FROM team WHERE id = $1 AND revision > 0), 'isRegionKnown', $4 IS NULL OR EXISTS (SELECT FROM region WHERE region_id = $4)) AS value
  UNION ALL
  SELECT 'series', json_build_object('no', no, 'workspaceId', workspace_id, 'kind', kind, 'sku', sku, 'poolId', pool_id::text) FROM held
  UNION ALL
  SELECT 'price', json_build_object('sku', sku, 'isOwn', team_id IS NOT NULL, 'fromMs', floor(extract(epoch FROM valid_from) * 1000),
      'unitPrice', unit_price::text)
    FROM price WHERE replaced_at IS NULL AND (team_id IS NULL OR team_id = $1) AND sku IN (SELECT sku FROM held)
  UNION ALL
  SELECT 'unit', json_build_object('sku', sku, 'unit', unit) FROM sku WHERE sku IN (SELECT sku FROM held)`;

/**
 * Reads in one statement what a report needs to know before it reads usage. Throws `invalid_input` that names `as_of`
 * where that is in the future.
 */
export async function readCatalogue(
  snapshot: Snapshot,
  teamId: string,
  pace: Pace,
  { workspaceId, kinds, regionId, asOf }: CatalogueFilter = {},
): Promise<Catalogue> {
  const values = [teamId, workspaceId ?? null, kinds ?? null, regionId ?? null];
  const rows = await snapshot.query<CatalogueRow>(catalogueStatement, values);
  const units = new Map<string, string>();
  const catalogue = { asOfMs: 0, teamNo: null, isRegionKnown: false, series: [] as Series[], units };
  const prices: PriceRow[] = [];
  for (const row of rows) {
    if (row.what === 'reading') Object.assign(catalogue, row.value);
    else if (row.what === 'series') catalogue.series.push(row.value);
    else if (row.what === 'price') prices.push(row.value);
    else units.set(row.value.sku, row.value.unit);
    if (pace.isFull()) await pace.turn();
  }
  const asOfMs = asOf === undefined ? catalogue.asOfMs : Date.parse(asOf);
  if (asOfMs > catalogue.asOfMs) throw invalidField('as_of', 'notInFuture', 'must not be in the future');
  const bySku = await pace.groupBy(prices, ({ sku }) => sku);
  const histories = new Map<string, PriceHistory>();
  for (const sku of new Set(catalogue.series.map((series) => series.sku))) {
    histories.set(sku, await PriceHistory.of(bySku.get(sku) ?? [], pace));
  }
  return { ...catalogue, asOfMs, prices: histories };
}
