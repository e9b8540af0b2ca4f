import type { EntityManager } from 'typeorm';
import { conflictOf, type Fact } from './distinct-facts.js';
import type { Numbering, Numbers } from './numbering.js';

/** A fact that is new, by the timeline it changes. */
export interface AddedFact {
  timelineNo: number;
  timeMs: number;
}

/**
 * Stores facts that are not known yet and gives back those. The timelines they belong to are locked until the transaction ends, before anything of
 * them is read, and always in one order. Throws `conflict` where one is known with other content.
 */
export async function storeFacts(manager: EntityManager, numbering: Numbering, facts: readonly Fact[]): Promise<AddedFact[]> {
  const numbers = await numbering.numbersOf(manager, facts);
  await lockTimelines(manager, numbers);
  // Sorted, so that two batches with facts in common wait for each other and do not lock each other out.
  const rows: Row[] = facts
    .map((fact, at) => ({ ...fact, timelineNo: 0, seriesNo: 0, ...numbers[at] }))
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

function columnsOf(rows: readonly Row[]): unknown[] {
  return [
    rows.map(({ source }) => source),
    rows.map(({ id }) => id),
    listOf(rows.map(({ timelineNo }) => timelineNo)),
    listOf(rows.map(({ seriesNo }) => seriesNo)),
    listOf(rows.map(({ timeMs }) => timeMs)),
    listOf(rows.map(({ sequence }) => sequence)),
    listOf(rows.map(({ quantityNano }) => quantityNano)),
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
  const timelines = [...new Set(numbers.map(({ timelineNo }) => timelineNo))];
  await manager.query('SELECT no FROM timeline WHERE no = ANY ($1::integer[]) ORDER BY no FOR NO KEY UPDATE', [listOf(timelines)]);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** An array as PostgreSQL reads it; the driver would quote each number. */
function listOf(numbers: readonly (number | string)[]): string {
  return `{${numbers.join(',')}}`;
}
