import { numberList } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { conflictOf, nameOf, type Fact, type NamedFact } from './distinct-facts.js';
import { Numbering } from './numbering.js';

/** A fact that is new, by the timeline that it changes. */
export interface AddedFact extends Fact {
  timelineNo: number;
  seriesNo: number;
}

const told = `unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::jsonb[])
  AS told (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano, resource_name, attributes)`;

const insertStatement = `
  INSERT INTO usage_fact (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano, resource_name, attributes)
  SELECT * FROM ${told} ON CONFLICT DO NOTHING RETURNING source, id`;

const content = (row: string) =>
  `(${row}.timeline_no, ${row}.series_no, ${row}.time_ms, ${row}.sequence, ${row}.quantity_nano, ${row}.resource_name, ${row}.attributes)`;

const othersStatement = `
  SELECT source, id FROM usage_fact known JOIN ${told} USING (source, id) WHERE ${content('known')} IS DISTINCT FROM ${content('told')}`;

/** Facts, each once and for ever. */
@Injectable()
export class FactStore {
  constructor(private readonly numbering: Numbering) {}

  /**
   * Stores facts that are not known yet and gives back those. Throws `conflict` where one is known with other content.
   */
  async add(manager: EntityManager, facts: readonly Fact[]): Promise<AddedFact[]> {
    const numbers = await this.numbering.numbersOf(manager, facts);
    // Sorted, so that two batches with facts in common wait for each other and do not lock each other out.
    const rows = facts
      .map((fact, at): AddedFact => ({ ...fact, timelineNo: 0, seriesNo: 0, ...numbers[at] }))
      .sort((one, other) => compare(one.source, other.source) || compare(one.id, other.id));
    const added = await manager.query<NamedFact[]>(insertStatement, columnsOf(rows));
    if (added.length === rows.length) return rows;
    const names = new Set(added.map(nameOf));
    await this.requireSameContent(
      manager,
      rows.filter((row) => !names.has(nameOf(row))),
    );
    return rows.filter((row) => names.has(nameOf(row)));
  }

  private async requireSameContent(manager: EntityManager, known: readonly AddedFact[]): Promise<void> {
    const others = await manager.query<NamedFact[]>(othersStatement, columnsOf(known));
    if (others.length === 0) return;
    const names = new Set(others.map(nameOf));
    throw conflictOf(known.filter((row) => names.has(nameOf(row))).sort((one, other) => one.index - other.index));
  }
}

function columnsOf(rows: readonly AddedFact[]): unknown[] {
  return [
    rows.map(({ source }) => source),
    rows.map(({ id }) => id),
    numberList(rows.map(({ timelineNo }) => timelineNo)),
    numberList(rows.map(({ seriesNo }) => seriesNo)),
    numberList(rows.map(({ timeMs }) => timeMs)),
    numberList(rows.map(({ sequence }) => sequence)),
    numberList(rows.map(({ quantityNano }) => quantityNano)),
    rows.map(({ resourceName }) => resourceName),
    rows.map(({ attributes }) => attributes),
  ];
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
