import { notBegun } from './begin-sql.js';
import { restSql } from './machine-migrations.js';
import { isFresh, isRetried } from './row-kinds.js';
import { clock, inSight, known, unclaimed, type Table } from './rows-sql.js';
import { parameters, statement, type Statement } from './statement.js';

/** The part of a machine that the poll reads. */
export interface PolledTable {
  readonly table: string;
  /** Those of its definition: rows in others are left to workers of another release. */
  readonly states: readonly string[];
  /** Those of them with a portion. */
  readonly portioned: readonly string[];
}

/**
 * Which of the tables, by their places among them, have rows that are to be worked at: due, parked until now, past
 * their deadline, or not begun, without a valid claim. Reads each index up to the first such row.
 */
export function dueSql(tables: readonly PolledTable[]): Statement {
  const { add, values } = parameters();
  const waits = ({ table, portioned }: PolledTable, states: string) => {
    const due = (kind: string) =>
      `FROM ${table} WHERE due_at IS NOT NULL AND ${kind} AND due_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known(states)}
        ORDER BY ${restSql}, lane, due_at`;
    const first = [
      due(isFresh),
      due(isRetried),
      `FROM ${table} WHERE parked_until <= (SELECT now FROM clock) AND ${known(states)} ORDER BY parked_until`,
      `FROM ${table} WHERE deadline_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known(states)} ORDER BY deadline_at`,
      ...portioned.map((state) => `FROM ${table} WHERE ${notBegun(state)} ORDER BY entered_at`),
    ];
    return first.map((rows) => `(SELECT true ${rows} LIMIT 1)`).join(', ');
  };
  const found = tables.map(
    (table, place) => `SELECT ${place} AS place WHERE coalesce(${waits(table, add(table.states))})`,
  );
  return { text: `WITH ${clock} ${found.join(' UNION ALL ')}`, values };
}

/**
 * Makes up to 1,000 rows due that were parked until now, of those in sight in states of the definition: the first of
 * each owner in each lane before the second of any.
 */
export function unparkSql({ table, key, owner }: Table, states: readonly string[]): Statement {
  return statement({ states }, (at) => {
    const waits = `parked_until <= (SELECT now FROM clock) AND ${known(at.states)}`;
    const some = `SELECT ${key} AS key, lane, ${owner ?? 'NULL::text'} AS owner, parked_until FROM ${table} WHERE ${waits}`;
    return `WITH ${clock},
    oldest AS MATERIALIZED (${some} ORDER BY parked_until LIMIT ${inSight}),
    in_sight AS (
      SELECT * FROM oldest
      UNION ALL
      (${some} AND parked_until > (SELECT max(parked_until) FROM oldest) ORDER BY parked_until DESC LIMIT ${inSight})
    ),
    numbered AS (
      SELECT key, row_number() OVER (PARTITION BY lane, owner ORDER BY parked_until, key) AS turn, parked_until FROM in_sight
    )
    UPDATE ${table} SET due_at = coalesce(due_at, parked_until), parked_until = NULL WHERE ${key} = ANY (ARRAY(
      SELECT taken.key FROM (SELECT key FROM numbered ORDER BY turn, parked_until) waiting, LATERAL (
        SELECT ${key} AS key FROM ${table} WHERE ${key} = waiting.key AND (${waits}) IS TRUE FOR NO KEY UPDATE SKIP LOCKED
      ) taken
      LIMIT 1000
    ))`;
  });
}
