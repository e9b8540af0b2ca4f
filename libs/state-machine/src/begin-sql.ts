import { clock, type Table } from './rows-sql.js';
import { statement, type Statement } from './statement.js';

/** In SQL: a row in a state with a `portion` that has not been begun. As the index of such rows has it. */
export const notBegun = (state: string) => `state = '${state}' AND deadline_at IS NULL`;

interface Beginning {
  readonly portion: number;
  readonly deadlineMs: number;
  readonly limit: number;
}

/**
 * Begins rows of a state: the deadline counts from now, and they are due. Those that are urgent need no room. Where
 * there is room for one alone, chance decides whether it is the first or the last that waits. A row counts for the
 * first quarter of its time, unless it is urgent.
 */
export function beginSql({ table, key, urgent }: Table, state: string, given: Beginning): Statement {
  const waiting = (order: '' | 'DESC', limit: string) => `SELECT ${key} AS key FROM ${table} WHERE ${notBegun(state)}
      ORDER BY entered_at ${order}, ${key} ${order} LIMIT (SELECT ${limit} FROM room) FOR NO KEY UPDATE SKIP LOCKED`;
  return statement(
    given,
    (at) =>
      // A limit in a subquery, which the planner does not know: with one beyond what a table without statistics seems
      // to have, it reads the whole table.
      `WITH ${clock},
    under_way AS (
      SELECT count(*) FILTER (WHERE counts AND deadline_at > (SELECT now FROM clock) + 0.75 * ${at.deadlineMs} * interval '1 millisecond') AS rows FROM (
        SELECT lane, attempts, deadline_at, (${urgent ?? 'false'}) IS NOT TRUE AS counts FROM ${table} WHERE deadline_at IS NOT NULL AND state = '${state}'
        ORDER BY deadline_at DESC LIMIT (SELECT 10 * ${at.portion}::int)
      ) begun GROUP BY lane HAVING max(attempts) = 0
    ),
    free AS MATERIALIZED (
      SELECT GREATEST(0, LEAST(${at.limit}::int, ${at.portion}::int - coalesce((SELECT sum(rows) FROM under_way), 0)))::int AS rows
      WHERE (SELECT true FROM ${table} WHERE ${notBegun(state)} ORDER BY entered_at, ${key} LIMIT 1)
    ),
    room AS MATERIALIZED (SELECT rows, (rows + round(random())::int) / 2 AS oldest FROM free),
    oldest AS MATERIALIZED (${waiting('', 'oldest')}),
    latest AS MATERIALIZED (${waiting('DESC', 'rows - oldest')}),
    urgent AS MATERIALIZED (
      SELECT ${key} AS key FROM ${table} WHERE ${notBegun(state)} AND (${urgent ?? 'false'}) LIMIT ${at.limit} FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE ${table} SET deadline_at = (SELECT now FROM clock) + ${at.deadlineMs} * interval '1 millisecond', due_at = (SELECT now FROM clock)
    WHERE ${key} = ANY (ARRAY(SELECT key FROM oldest UNION SELECT key FROM latest UNION SELECT key FROM urgent)) RETURNING ${key}`,
  );
}

/** As `beginSql`, of rows that are named. */
export function beginNowSql(
  { table, key }: Table,
  state: string,
  given: { readonly keys: readonly string[]; readonly deadlineMs: number },
): Statement {
  return statement(
    given,
    (at) => `WITH ${clock}
    UPDATE ${table} SET deadline_at = (SELECT now FROM clock) + ${at.deadlineMs} * interval '1 millisecond', due_at = (SELECT now FROM clock)
    WHERE ${key} = ANY (ARRAY(
      SELECT ${key} FROM ${table} WHERE ${key} = ANY (${at.keys}) AND (${notBegun(state)}) IS TRUE FOR NO KEY UPDATE SKIP LOCKED
    ))`,
  );
}
