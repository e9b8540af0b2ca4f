import type { EntityManager } from 'typeorm';
import { conflictOf, type Fact } from './distinct-facts.js';

/** A fact that is new, by the timeline it changes. */
export interface AddedFact {
  timelineNo: number;
  timeMs: number;
}

type Numbers = { team_no: number | null; timeline_no: number | null; series_no: number | null };

/**
 * Stores facts that are not known yet and gives back those. The timelines they belong to are locked until the transaction ends, before anything of
 * them is read, and always in one order. Throws `conflict` where one is known with other content.
 */
export async function storeFacts(manager: EntityManager, facts: readonly Fact[]): Promise<AddedFact[]> {
  const numbers = await numbersOf(manager, facts);
  await lockTimelines(manager, numbers);
  // Sorted, so that two batches with facts in common wait for each other and do not lock each other out.
  const rows: Row[] = facts
    .map((fact, at) => ({ ...fact, timelineNo: numbers[at]?.timeline_no ?? 0, seriesNo: numbers[at]?.series_no ?? 0 }))
    .sort((one, other) => compare(one.source, other.source) || compare(one.id, other.id));
  const added = await manager.query<{ source: string; id: string; timeline_no: number; time_ms: string }[]>(
    `INSERT INTO usage_fact (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano, resource_name, attributes)
     SELECT * FROM ${told} ON CONFLICT DO NOTHING RETURNING source, id, timeline_no, time_ms`,
    columnsOf(rows),
  );
  if (added.length < rows.length) await requireSameContent(manager, without(added, rows));
  return added.map(({ timeline_no, time_ms }) => ({ timelineNo: timeline_no, timeMs: Number(time_ms) }));
}

type Row = Fact & { timelineNo: number; seriesNo: number };

function columnsOf(rows: readonly Row[]): unknown[][] {
  return [
    rows.map(({ source }) => source),
    rows.map(({ id }) => id),
    rows.map(({ timelineNo }) => timelineNo),
    rows.map(({ seriesNo }) => seriesNo),
    rows.map(({ timeMs }) => timeMs),
    rows.map(({ sequence }) => sequence),
    rows.map(({ quantityNano }) => quantityNano),
    rows.map(({ resourceName }) => resourceName),
    rows.map(({ attributes }) => attributes),
  ];
}

function without(added: readonly { source: string; id: string }[], rows: readonly Row[]): Row[] {
  const names = new Set(added.map(({ source, id }) => `${source}\0${id}`));
  return rows.filter(({ source, id }) => !names.has(`${source}\0${id}`));
}

const told = `unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::jsonb[])
  AS told (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano, resource_name, attributes)`;

async function requireSameContent(manager: EntityManager, known: readonly Row[]): Promise<void> {
  const content = (row: string) =>
    `(${row}.timeline_no, ${row}.series_no, ${row}.time_ms, ${row}.sequence, ${row}.quantity_nano, ${row}.resource_name, ${row}.attributes)`;
  const others = await manager.query<{ source: string; id: string }[]>(
    `SELECT source, id FROM usage_fact known JOIN ${told} USING (source, id) WHERE ${content('known')} IS DISTINCT FROM ${content('told')}`,
    columnsOf(known),
  );
  if (others.length === 0) return;
  const names = new Set(others.map(({ source, id }) => `${source}\0${id}`));
  throw conflictOf(known.filter(({ source, id }) => names.has(`${source}\0${id}`)).sort((one, other) => one.index - other.index));
}

async function lockTimelines(manager: EntityManager, numbers: readonly Numbers[]): Promise<void> {
  const timelines = [...new Set(numbers.map(({ timeline_no }) => timeline_no))];
  await manager.query('SELECT no FROM timeline WHERE no = ANY ($1::integer[]) ORDER BY no FOR NO KEY UPDATE', [timelines]);
}

/** What each fact's team, timeline and series are called; those that are new are made. */
async function numbersOf(manager: EntityManager, facts: readonly Fact[]): Promise<Numbers[]> {
  const values = [
    facts.map(({ teamId }) => teamId),
    facts.map(({ resourceId }) => resourceId),
    facts.map(({ sku }) => sku),
    facts.map(({ workspaceId }) => workspaceId),
    facts.map(({ kind }) => kind),
    facts.map(({ regionId }) => regionId),
    facts.map(({ poolId }) => poolId),
  ];
  const numbers = await manager.query<Numbers[]>(numbersQuery, values);
  if (numbers.every(({ timeline_no, series_no }) => timeline_no !== null && series_no !== null)) return numbers;
  // Only what is missing: an attempt that meets a conflict would use up a number of its sequence.
  for (const statement of missing)
    await manager.query(
      statement.sql,
      statement.values.map((at) => values[at]),
    );
  return manager.query<Numbers[]>(numbersQuery, values);
}

const numbersQuery = `SELECT team.no AS team_no, timeline.no AS timeline_no, series.no AS series_no
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[])
    WITH ORDINALITY AS told (team_id, resource_id, sku, workspace_id, kind, region_id, pool_id, at)
  LEFT JOIN team ON team.id = told.team_id
  LEFT JOIN timeline ON timeline.team_no = team.no AND timeline.resource_id = told.resource_id AND timeline.sku = told.sku
  LEFT JOIN series ON series.team_no = team.no AND series.workspace_id = told.workspace_id AND series.kind = told.kind AND series.sku = told.sku
    AND series.region_id IS NOT DISTINCT FROM told.region_id AND series.pool_id IS NOT DISTINCT FROM told.pool_id
  ORDER BY told.at`;

/** Each in one order, so that batches which make the same do not lock each other out. */
const missing: { sql: string; values: number[] }[] = [
  {
    values: [0],
    sql: `INSERT INTO team (id) SELECT DISTINCT id FROM unnest($1::uuid[]) told (id)
      WHERE NOT EXISTS (SELECT FROM team WHERE team.id = told.id) ORDER BY id ON CONFLICT DO NOTHING`,
  },
  {
    values: [5],
    sql: `INSERT INTO region (region_id) SELECT DISTINCT id FROM unnest($1::bigint[]) told (id)
      WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM region WHERE region_id = id) ORDER BY id ON CONFLICT DO NOTHING`,
  },
  {
    values: [0, 1, 2],
    sql: `INSERT INTO timeline (team_no, resource_id, sku)
      SELECT DISTINCT team.no, told.resource_id, told.sku
      FROM unnest($1::uuid[], $2::text[], $3::text[]) AS told (team_id, resource_id, sku) JOIN team ON team.id = told.team_id
      WHERE NOT EXISTS (
        SELECT FROM timeline known WHERE known.team_no = team.no AND known.resource_id = told.resource_id AND known.sku = told.sku)
      ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`,
  },
  {
    values: [0, 3, 4, 2, 5, 6],
    sql: `INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
      SELECT DISTINCT team.no, told.workspace_id, told.kind, told.sku, told.region_id, told.pool_id
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
        AS told (team_id, workspace_id, kind, sku, region_id, pool_id)
      JOIN team ON team.id = told.team_id
      WHERE NOT EXISTS (
        SELECT FROM series known WHERE known.team_no = team.no AND known.workspace_id = told.workspace_id AND known.kind = told.kind
          AND known.sku = told.sku AND known.region_id IS NOT DISTINCT FROM told.region_id AND known.pool_id IS NOT DISTINCT FROM told.pool_id)
      ORDER BY 1, 2, 3, 4, 5, 6 ON CONFLICT DO NOTHING`,
  },
];

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
