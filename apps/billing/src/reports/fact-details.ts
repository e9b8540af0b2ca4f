import type { Snapshot } from '@atoll/database';
import { inChunks, type Pace } from '@atoll/waiting';

/** A resource of the team, within one pool where it may have been in several. */
export interface AskedResource {
  /** Under which its details are returned. */
  id: string;
  resourceId: string;
  poolId?: string;
}

/** Latest details of a resource among all of its facts, of whatever time; null where no fact has one. */
export interface SubscriptionDetails {
  profile: string | null;
  vRamGb: number | null;
}

export interface ResourceDetails {
  name: string | null;
  regionId: string | null;
  usedSizeInGb: number | null;
}

/** Details of a pool by all facts that its team has there, of whatever time. */
export interface PoolDetails {
  name: string | null;
  regionId: string | null;
  /** Whether the pool sells slices of several profiles, whichever of them are billed. */
  sellsSeveral: boolean;
}

/** The order of a timeline: of several facts at one instant the last one holds. */
const latestFirst = (fact: string) =>
  ['time_ms', 'sequence', 'source', 'id'].map((column) => `${fact}.${column} DESC`).join(', ');

/** Joins each timeline with its latest fact that meets `condition`, which is that of a partial index. */
const withLatest = (name: string, value: string, condition: string) => `
  LEFT JOIN LATERAL (
    SELECT ${value} AS value, time_ms, sequence, source, id FROM usage_fact fact
    WHERE timeline_no = timeline.no AND ${condition}
      AND (asked.pool_id IS NULL OR EXISTS (SELECT FROM series WHERE no = series_no AND pool_id = asked.pool_id))
    ORDER BY ${latestFirst('fact')} LIMIT 1
  ) AS ${name} ON true`;

/** The value of the latest of several facts that were joined; null where there is none. */
const latestOf = (fact: string, value = 'value') =>
  `(array_agg(${fact}.${value} ORDER BY ${latestFirst(fact)}) FILTER (WHERE ${fact}.time_ms IS NOT NULL))[1]`;

/** A row for each SKU of each asked resource. */
const asked = `unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS asked (resource_id, pool_id, resource_no)
  JOIN timeline ON timeline.team_no = $1 AND timeline.resource_id = asked.resource_id`;
const hasProfile = `attributes ?| '{profile,v_ram_gb}'::text[]`;
const isNumber = (name: string) => `jsonb_typeof(attributes -> '${name}') = 'number'`;

const subscriptionStatement = `
  SELECT resource_no::integer - 1 AS "resourceNo", ${latestOf('profile')} AS profile, ${latestOf('v_ram')} AS "vRamGb" FROM ${asked}
  ${withLatest('profile', `attributes ->> 'profile'`, `${hasProfile} AND jsonb_typeof(attributes -> 'profile') = 'string'`)}
  ${withLatest('v_ram', `attributes -> 'v_ram_gb'`, `${hasProfile} AND ${isNumber('v_ram_gb')}`)}
  GROUP BY resource_no`;

/** There is no index of the facts with a region, since nearly all have one; a team without any is skipped. */
const resourceStatement = `
  SELECT resource_no::integer - 1 AS "resourceNo", ${latestOf('name')} AS name, ${latestOf('region')} AS "regionId", ${latestOf('used')} AS "usedSizeInGb"
  FROM ${asked}
  ${withLatest('name', 'resource_name', 'resource_name IS NOT NULL')}
  ${withLatest(
    'region',
    '(SELECT region_id::text FROM series WHERE no = series_no)',
    `EXISTS (SELECT FROM series WHERE team_no = $1 AND region_id IS NOT NULL)
      AND EXISTS (SELECT FROM series WHERE no = series_no AND region_id IS NOT NULL)`,
  )}
  ${withLatest('used', `attributes -> 'used_size_in_gb'`, isNumber('used_size_in_gb'))}
  GROUP BY resource_no`;

/** A pool of which several SKUs were held sells several profiles, and one whose seller says so in `pool_profiles`. */
const poolStatement = `
  SELECT "poolId", name ->> 'pool_name' AS name, "regionId", "heldProfiles" > 1 OR COALESCE(name @? '$.pool_profiles ? (@ > 1)', false) AS "sellsSeveral"
  FROM (
    SELECT pool_id::text AS "poolId", ${latestOf('named', 'attributes')} AS name, count(DISTINCT sku) AS "heldProfiles",
      (array_agg(region_id::text ORDER BY no DESC) FILTER (WHERE region_id IS NOT NULL))[1] AS "regionId"
    FROM series LEFT JOIN LATERAL (
      SELECT attributes, time_ms, sequence, source, id FROM usage_fact fact
      WHERE series_no = series.no AND jsonb_typeof(attributes -> 'pool_name') = 'string'
      ORDER BY ${latestFirst('fact')} LIMIT 1
    ) AS named ON true
    WHERE team_no = $1 AND kind = 'gpuaas_pool' AND pool_id = ANY ($2::bigint[])
    GROUP BY pool_id
  ) AS pool`;

/** Reads what facts have besides quantities. */
export class FactDetails {
  constructor(private readonly snapshot: Snapshot) {}

  /** By the ids of what was asked, as all of these; none for a resource without facts. */
  async subscriptions(
    teamNo: number,
    resources: readonly AskedResource[],
    pace: Pace,
  ): Promise<Map<string, SubscriptionDetails>> {
    return this.find(subscriptionStatement, teamNo, resources, pace);
  }

  async resources(
    teamNo: number,
    resources: readonly AskedResource[],
    pace: Pace,
  ): Promise<Map<string, ResourceDetails>> {
    return this.find(resourceStatement, teamNo, resources, pace);
  }

  async pools(teamNo: number, poolIds: readonly string[], pace: Pace): Promise<Map<string, PoolDetails>> {
    const found = new Map<string, PoolDetails>();
    for (const ids of inChunks(poolIds)) {
      const rows = await this.snapshot.query<PoolDetails & { poolId: string }>(poolStatement, [teamNo, ids]);
      for (const row of rows) found.set(row.poolId, row);
      if (pace.isFull(rows.length)) await pace.turn();
    }
    return found;
  }

  private async find<Details extends object>(
    text: string,
    teamNo: number,
    resources: readonly AskedResource[],
    pace: Pace,
  ): Promise<Map<string, Details>> {
    const found = new Map<string, Details>();
    for (const chunk of inChunks(resources)) {
      const [ids, poolIds] = [chunk.map(({ resourceId }) => resourceId), chunk.map(({ poolId = null }) => poolId)];
      const rows = await this.snapshot.query<Details & { resourceNo: number }>(text, [teamNo, ids, poolIds]);
      for (const row of rows) {
        const resource = chunk[row.resourceNo];
        if (resource) found.set(resource.id, row);
      }
      if (pace.isFull(chunk.length)) await pace.turn();
    }
    return found;
  }
}
