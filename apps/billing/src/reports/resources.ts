import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

/** A resource with one of its SKUs. */
export interface Timeline {
  no: number;
  resourceId: string;
  sku: string;
}

/** What facts tell of a resource besides its quantity, by name, and the JSON type that it must have to count. */
const toldTypes = {
  resource_name: 'string',
  region_id: 'number',
  pool_name: 'string',
  profile: 'string',
  v_ram_gb: 'number',
  used_size_in_gb: 'number',
} as const;
type ToldName = keyof typeof toldTypes;
type NameOf<Type> = { [Name in ToldName]: (typeof toldTypes)[Name] extends Type ? Name : never }[ToldName];

/** `name` of the resource of a timeline, in a pool where one was asked for, is `value`. */
export interface Told {
  timelineNo: number;
  poolId: string | null;
  name: ToldName;
  value: string | number;
}

/** The latest fact mostly tells all there is. Where many tell nothing of a thing, the search for it ends here. */
const mostFacts = 10_000;

const toldStatement = `
  SELECT asked.timeline_no AS "timelineNo", asked.pool_id::text AS "poolId", wanted.name, told.value
  FROM unnest($1::integer[], $2::bigint[]) AS asked (timeline_no, pool_id)
  CROSS JOIN unnest($3::text[], $4::text[]) AS wanted (name, type)
  CROSS JOIN LATERAL (
    SELECT fact.time_ms, fact.sequence, fact.source, fact.id, detail.value
    FROM (
      SELECT * FROM usage_fact WHERE timeline_no = asked.timeline_no
      ORDER BY time_ms DESC, sequence DESC, source DESC, id DESC
      LIMIT ${mostFacts}
    ) AS fact
    CROSS JOIN LATERAL (
      SELECT CASE wanted.name
        WHEN 'resource_name' THEN to_jsonb(fact.resource_name)
        WHEN 'region_id' THEN (SELECT to_jsonb(region_id) FROM series WHERE no = fact.series_no)
        ELSE fact.attributes -> wanted.name
      END AS value
    ) AS detail
    WHERE CASE WHEN jsonb_typeof(detail.value) = wanted.type
      THEN asked.pool_id IS NULL OR EXISTS (SELECT FROM series WHERE no = fact.series_no AND pool_id = asked.pool_id) END
    ORDER BY fact.time_ms DESC, fact.sequence DESC, fact.source DESC, fact.id DESC
    LIMIT 1
  ) AS told
  ORDER BY told.time_ms DESC, told.sequence DESC, told.source DESC, told.id DESC`;

/** What is known of resources by name. */
@Injectable()
export class Resources {
  constructor(private readonly statements: Statements) {}

  async timelines(nos: readonly number[]): Promise<Map<number, Timeline>> {
    if (nos.length === 0) return new Map();
    const text = `SELECT no, resource_id AS "resourceId", sku FROM timeline WHERE no = ANY ($1::integer[])`;
    const rows = await this.statements.query<Timeline>('report timelines', text, [nos]);
    return new Map(rows.map((row) => [row.no, row]));
  }

  /** What was told last of each name, the latest first: for several timelines together, the first that comes holds. */
  async told(asked: readonly { timelineNo: number; poolId?: string }[], names: readonly ToldName[]): Promise<Told[]> {
    if (asked.length === 0) return [];
    return this.statements.query<Told>('report details', toldStatement, [
      asked.map(({ timelineNo }) => timelineNo),
      asked.map(({ poolId }) => poolId ?? null),
      names,
      names.map((name) => toldTypes[name]),
    ]);
  }

  /** Names of workspaces by id, of those that are gone too. */
  async workspaceNames(ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map();
    const text = `SELECT id, name FROM workspace WHERE id = ANY ($1::uuid[])`;
    const rows = await this.statements.query<{ id: string; name: string }>('report workspaces', text, [ids]);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }
}

/** Null where it never was told. */
export function latestText(told: readonly Told[], name: NameOf<'string'>): string | null {
  const value = told.find((one) => one.name === name)?.value;
  return typeof value === 'string' ? value : null;
}

/** Null where it never was told. */
export function latestNumber(told: readonly Told[], name: NameOf<'number'>): number | null {
  const value = told.find((one) => one.name === name)?.value;
  return typeof value === 'number' ? value : null;
}
