interface Table {
  readonly table: string;
  readonly key: string;
}

/** Of a row that no worker is at. */
const unclaimed = '(claimed_until IS NULL OR claimed_until < (SELECT now FROM clock))';
const clock = 'clock AS MATERIALIZED (SELECT clock_timestamp() AS now)';

/** The names of lanes with due rows, one by one by the index: costs what is read of it, whatever else is in the table. */
function lanesOf({ table }: Table, name: string, kind: string, range: string): string {
  const some = `SELECT lane FROM ${table} WHERE due_at IS NOT NULL AND ${kind} AND ${range}`;
  return `${name} AS (
      (${some} ORDER BY lane LIMIT 1)
      UNION ALL
      SELECT next.lane FROM ${name} last, LATERAL (${some} AND lane > last.lane ORDER BY lane LIMIT 1) next
    )`;
}

const kinds = { fresh: 'attempts = 0', retried: 'attempts > 0' };

/** Rows of a lane that may be claimed. */
function claimable({ table }: Table, kind: string, lane: string): string {
  return `${table} WHERE ${table}.lane = ${lane} AND due_at IS NOT NULL AND ${kind} AND due_at <= (SELECT now FROM clock) AND ${unclaimed}`;
}

/** Of each lane visited, the rows that may be claimed, longest due first. Locked rows are left out, not waited for. */
function rowsOf(of: Table, kind: keyof typeof kinds): string {
  return `SELECT visited.*, ${kind === 'retried'} AS is_retried, candidate.* FROM visited, LATERAL (
      SELECT ${of.key} AS key, due_at FROM ${claimable(of, kinds[kind], 'visited.lane')}
      ORDER BY due_at LIMIT visited.room FOR NO KEY UPDATE SKIP LOCKED
    ) candidate`;
}

/** Lanes in which something may be claimed, and no step is under way in this process. */
function idleLanes(of: Table, name: string, kind: keyof typeof kinds): string {
  // Scalar, so that it is asked lane by lane, and never becomes a join over all that is due.
  const first = (each: keyof typeof kinds) => `(SELECT true FROM ${claimable(of, kinds[each], `${name}.lane`)} LIMIT 1)`;
  return `SELECT lane FROM ${name} WHERE NOT $5::jsonb ? lane AND ${first(kind)}${kind === 'retried' ? ` AND ${first('fresh')} IS NULL` : ''}`;
}

function claimed({ table, key }: Table): string {
  return `UPDATE ${table} SET claim_token = $1, claimed_until = clock_timestamp() + $2 * interval '1 millisecond'
    FROM chosen WHERE ${table}.${key} = chosen.key
    RETURNING ${table}.*, extract(epoch FROM deadline_at - clock_timestamp()) * 1000 AS left_ms`;
}

/**
 * Claims rows that are due. $1 token, $2 milliseconds, $3 limit, $4 room in a lane that $5 does not name, $5 JSON:
 * lane → [steps under way, room], $6 and $7 the lane that was served last among those with fresh and with retried rows,
 * $8 how many may be claimed beside others of their lanes.
 */
export function claimDueSql(of: Table): string {
  const idle = [
    idleLanes(of, 'fresh_after', 'fresh'),
    idleLanes(of, 'fresh_until', 'fresh'),
    idleLanes(of, 'retried_after', 'retried'),
    idleLanes(of, 'retried_until', 'retried'),
  ];
  return `WITH RECURSIVE ${clock},
    ${lanesOf(of, 'fresh_after', kinds.fresh, 'lane > $6')},
    ${lanesOf(of, 'fresh_until', kinds.fresh, 'lane <= $6')},
    ${lanesOf(of, 'retried_after', kinds.retried, 'lane > $7')},
    ${lanesOf(of, 'retried_until', kinds.retried, 'lane <= $7')},
    visited AS MATERIALIZED (
      SELECT lane, 0 AS under_way, $4::int AS room FROM (${idle.join(' UNION ALL ')} LIMIT $3) idle
      UNION ALL
      SELECT key, (value->>0)::int, (value->>1)::int FROM jsonb_each($5) WHERE (value->>1)::int > 0
    ),
    candidates AS MATERIALIZED (${rowsOf(of, 'fresh')} UNION ALL ${rowsOf(of, 'retried')}),
    placed AS (
      SELECT *, row_number() OVER (PARTITION BY lane ORDER BY is_retried, due_at, key) AS place FROM candidates
    ),
    ordered AS (
      SELECT key, under_way + place AS place, row_number() OVER (ORDER BY under_way + place, is_retried, due_at, key) AS turn
      FROM placed WHERE place <= room
    ),
    chosen AS MATERIALIZED (SELECT key FROM ordered WHERE turn <= $3 AND (place = 1 OR turn <= $8))
    ${claimed(of)}`;
}

/** Claims rows past their deadline. $1 token, $2 milliseconds, $3 limit, $4 states that are tried late if they were not before, $5 lanes that hang. */
export function claimOverdueSql(of: Table): string {
  const { table, key } = of;
  return `WITH ${clock},
    chosen AS MATERIALIZED (
      SELECT ${key} AS key FROM ${table}
      WHERE deadline_at <= (SELECT now FROM clock) AND ${unclaimed}
        AND NOT (state = ANY ($4::text[]) AND attempts = 0 AND lane <> ALL ($5::text[]))
      ORDER BY deadline_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
    )
    ${claimed(of)}`;
}

/** Makes due what was parked until now. */
export function unparkSql({ table, key }: Table): string {
  return `UPDATE ${table} SET due_at = coalesce(due_at, parked_until), parked_until = NULL WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE parked_until <= clock_timestamp() ORDER BY parked_until LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
    )`;
}
