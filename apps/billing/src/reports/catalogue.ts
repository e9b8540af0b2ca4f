import type { UsageKind } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { PriceHistory, type PriceRow } from './price-history.js';

/** Which of a team's usage a report is of. */
export interface CatalogueFilter {
  workspaceId?: string;
  kind?: UsageKind;
  /** A number, as text. */
  regionId?: string;
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
  /** False for a region in the filter that no event and no fact has named. */
  isRegionKnown: boolean;
  series: Series[];
  /** By SKU; each that the series have is there. */
  prices: ReadonlyMap<string, PriceHistory>;
  /** By SKU; none for one that never had a price. */
  units: ReadonlyMap<string, string>;
}

interface CatalogueRow {
  as_of_ms: string;
  is_region_known: boolean;
  series: Series[] | null;
  prices: PriceRow[] | null;
  units: { sku: string; unit: string }[] | null;
}

const catalogueStatement = `
  WITH held AS (
    SELECT * FROM series
    WHERE team_no = (SELECT no FROM team WHERE id = $1)
      AND ($2::uuid IS NULL OR workspace_id = $2) AND ($3::text IS NULL OR kind = $3) AND ($4::bigint IS NULL OR region_id = $4)
  )
  SELECT
    floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS as_of_ms,
    $4 IS NULL OR EXISTS (SELECT FROM region WHERE region_id = $4) AS is_region_known,
    (SELECT json_agg(json_build_object('no', no, 'workspaceId', workspace_id, 'kind', kind, 'sku', sku, 'poolId', pool_id::text)) FROM held)
      AS series,
    (SELECT json_agg(json_build_object('sku', sku, 'isOwn', team_id IS NOT NULL, 'fromMs', floor(extract(epoch FROM valid_from) * 1000),
        'unitPrice', unit_price::text))
      FROM price WHERE replaced_at IS NULL AND (team_id IS NULL OR team_id = $1) AND sku IN (SELECT sku FROM held)) AS prices,
    (SELECT json_agg(json_build_object('sku', sku, 'unit', unit)) FROM sku WHERE sku IN (SELECT sku FROM held)) AS units`;

/** Reads in one statement what a report needs to know before it reads usage. */
@Injectable()
export class Catalogues {
  constructor(private readonly statements: Statements) {}

  async read(teamId: string, filter: CatalogueFilter = {}): Promise<Catalogue> {
    const { workspaceId = null, kind = null, regionId = null } = filter;
    const values = [teamId, workspaceId, kind, regionId];
    const [row] = await this.statements.query<CatalogueRow>('report catalogue', catalogueStatement, values);
    if (!row) throw new Error('The catalogue is one row.');
    const { units } = row;
    const series = row.series ?? [];
    const prices = Map.groupBy(row.prices ?? [], ({ sku }) => sku);
    const skus = [...new Set(series.map(({ sku }) => sku))];
    return {
      asOfMs: Number(row.as_of_ms),
      isRegionKnown: row.is_region_known,
      series,
      prices: new Map(skus.map((sku) => [sku, PriceHistory.of(prices.get(sku) ?? [])])),
      units: new Map(units?.map(({ sku, unit }) => [sku, unit])),
    };
  }
}
