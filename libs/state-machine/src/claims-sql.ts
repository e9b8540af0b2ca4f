interface Table {
  readonly table: string;
  readonly key: string;
  /** SQL expression for whose a row is, if owners take turns in a lane. */
  readonly owner?: string | null;
}

/**
 * Owners take turns among so many rows of a lane, those that are due for longest, and as many that became due last: so
 * many are read of any number, and what becomes due is in sight at once.
 */
const inSight = 1_000;

/** Condition for rows without a valid claim. */
const unclaimed = '(claimed_until IS NULL OR claimed_until <= (SELECT now FROM clock))';
/** Condition for rows in states that the worker's definition has: those of a later release belong to its workers. */
const known = (states: string) => `state = ANY (${states}::text[])`;
/** Rounded as the columns are, which may be up: what was due when it was written is due for every look after that. */
const clock = 'clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now)';

/**
 * The distinct lanes of due rows, by one index probe per lane (a loose index scan), evaluated only as far as its reader
 * goes.
 */
function lanesOf({ table }: Table, name: string, kind: string, range: string): string {
  const some = `SELECT lane FROM ${table} WHERE due_at IS NOT NULL AND ${kind} AND ${range}`;
  return `${name} AS (
      (${some} ORDER BY lane LIMIT 1)
      UNION ALL
      SELECT next.lane FROM ${name} last, LATERAL (${some} AND lane > last.lane ORDER BY lane LIMIT 1) next
    )`;
}

const kinds = { fresh: 'attempts = 0', retried: 'attempts > 0' };

/** Condition for the due rows of a lane of one kind, which is a condition too. */
function due({ table }: Table, kind: string, lane: string): string {
  return `${table}.lane = ${lane} AND due_at IS NOT NULL AND ${kind} AND due_at <= (SELECT now FROM clock)`;
}

/** Condition for the rows of a lane that may be claimed. */
function claimable(of: Table, kind: string, lane: string): string {
  return `${due(of, kind, lane)} AND ${unclaimed}`;
}

/** Up to `room` claimable rows of a lane, longest due first, or owner by owner. Locked rows are skipped. */
function nextOf(of: Table, kind: string, lane: string, room: string): string {
  const { table, key, owner } = of;
  if (!owner) {
    return `SELECT ${key} AS key, due_at FROM ${table} WHERE ${claimable(of, kind, lane)}
      ORDER BY due_at LIMIT ${room} FOR NO KEY UPDATE SKIP LOCKED`;
  }
  // Locked one by one in the order of their turns. IS TRUE: only the key is to be looked up in an index here.
  return `SELECT taken.*, turn, chance FROM (${turnsOf(of, kind, lane)}) waiting, LATERAL (
        SELECT ${key} AS key, due_at FROM ${table}
        WHERE ${key} = waiting.key AND (${claimable(of, kind, lane)}) IS TRUE FOR NO KEY UPDATE SKIP LOCKED
      ) taken
      ORDER BY turn, chance LIMIT ${room}`;
}

/**
 * The claimable rows in sight of a lane, the first of each owner before the second of any. Rows that are claimed, by
 * whichever process, are turns that their owner has had. Among owners that have had as many, chance decides, anew with
 * each claim: by age, those with many old rows would come first until they have no more.
 */
function turnsOf(of: Table, kind: string, lane: string): string {
  const { table, key, owner } = of;
  const some = `SELECT ${key} AS key, ${owner} AS owner, ${unclaimed} AS is_free, due_at FROM ${table} WHERE ${due(of, kind, lane)}`;
  return `WITH oldest AS MATERIALIZED (${some} ORDER BY due_at LIMIT ${inSight}),
          in_sight AS (
            SELECT * FROM oldest
            UNION ALL
            (${some} AND due_at > (SELECT max(due_at) FROM oldest) ORDER BY due_at DESC LIMIT ${inSight})
          ),
          numbered AS (
            SELECT key, owner, is_free, row_number() OVER (PARTITION BY owner ORDER BY is_free, due_at, key) AS turn FROM in_sight
          )
        SELECT key, turn, md5(concat($1::uuid, owner)) AS chance FROM numbered WHERE is_free ORDER BY turn, chance`;
}

/** The claimable rows of each visited lane. */
function rowsOf(of: Table, kind: keyof typeof kinds): string {
  return `SELECT visited.*, ${kind === 'retried'} AS is_retried, candidate.* FROM visited, LATERAL (
      ${nextOf(of, `${kinds[kind]} AND ${known('$9')}`, 'visited.lane', 'visited.room')}
    ) candidate`;
}

/** Lanes with claimable rows in which this process runs no step. */
function idleLanes(of: Table, name: string, kind: keyof typeof kinds): string {
  // A scalar subquery is evaluated lane by lane; EXISTS could become a join over all due rows.
  const first = (each: keyof typeof kinds) =>
    `(SELECT true FROM ${of.table} WHERE ${claimable(of, `${kinds[each]} AND ${known('$9')}`, `${name}.lane`)} LIMIT 1)`;
  return `SELECT lane FROM ${name} WHERE NOT $5::jsonb ? lane AND ${first(kind)}${kind === 'retried' ? ` AND ${first('fresh')} IS NULL` : ''}`;
}

function claimed({ table, key }: Table): string {
  return `UPDATE ${table} SET claim_token = $1, claimed_until = clock_timestamp() + $2 * interval '1 millisecond'
    FROM chosen WHERE ${table}.${key} = chosen.key
    RETURNING ${table}.*, extract(epoch FROM deadline_at - clock_timestamp()) * 1000 AS left_ms`;
}

/**
 * Claims due rows. $1 token, $2 length of the claim in ms, $3 limit, $4 room of lanes that $5 does not name, $5 JSON:
 * lane → [running steps, room], $6 and $7 the lane served last among those with fresh and with retried rows, $8 the
 * position up to which rows other than the first of their lane may be claimed, $9 the states of the definition.
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
      SELECT *, row_number() OVER (PARTITION BY lane ORDER BY is_retried, ${of.owner ? 'turn, chance, ' : ''}due_at, key) AS place FROM candidates
    ),
    ordered AS (
      SELECT key, under_way + place AS place, row_number() OVER (ORDER BY under_way + place, is_retried, due_at, key) AS turn
      FROM placed WHERE place <= room
    ),
    chosen AS MATERIALIZED (SELECT key FROM ordered WHERE turn <= $3 AND (place = 1 OR turn <= $8))
    ${claimed(of)}`;
}

/**
 * Claims rows past their deadline. $1 token, $2 length of the claim in ms, $3 limit, $4 states that get a late try, $5
 * lanes that hang, $6 the states of the definition.
 */
export function claimOverdueSql(of: Table): string {
  const { table, key } = of;
  return `WITH ${clock},
    chosen AS MATERIALIZED (
      SELECT ${key} AS key FROM ${table}
      WHERE deadline_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known('$6')}
        AND NOT (state = ANY ($4::text[]) AND attempts = 0 AND lane <> ALL ($5::text[]))
      ORDER BY deadline_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
    )
    ${claimed(of)}`;
}

/** Claims more rows of one lane and state. $1 token, $2 milliseconds, $3 limit, $4 lane, $5 state. */
export function claimAlikeSql(of: Table): string {
  return `WITH ${clock},
    chosen AS MATERIALIZED (${nextOf(of, `${kinds.fresh} AND state = $5`, '$4', '$3')})
    ${claimed(of)}`;
}

/** Makes rows due that were parked until now. $1 the states of the definition. */
export function unparkSql({ table, key }: Table): string {
  return `WITH ${clock}
    UPDATE ${table} SET due_at = coalesce(due_at, parked_until), parked_until = NULL WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE parked_until <= (SELECT now FROM clock) AND ${known('$1')} ORDER BY parked_until LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
    )`;
}

/**
 * Which of the tables, by their places among them, have rows that are to be worked at: due, parked until now, or past their deadline,
 * without a valid claim. Reads each index up to the first such row. $1, $2, …: the states of the definition of each table.
 */
export function dueSql(tables: readonly Pick<Table, 'table'>[]): string {
  const waits = ({ table }: Pick<Table, 'table'>, states: string) => {
    const due = (kind: string) =>
      `FROM ${table} WHERE due_at IS NOT NULL AND ${kind} AND due_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known(states)}
        ORDER BY lane, due_at`;
    const first = [
      due(kinds.fresh),
      due(kinds.retried),
      `FROM ${table} WHERE parked_until <= (SELECT now FROM clock) AND ${known(states)} ORDER BY parked_until`,
      `FROM ${table} WHERE deadline_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known(states)} ORDER BY deadline_at`,
    ];
    return first.map((rows) => `(SELECT true ${rows} LIMIT 1)`).join(', ');
  };
  const found = tables.map((table, place) => `SELECT ${place} AS place WHERE coalesce(${waits(table, `$${place + 1}`)})`);
  return `WITH ${clock} ${found.join(' UNION ALL ')}`;
}
