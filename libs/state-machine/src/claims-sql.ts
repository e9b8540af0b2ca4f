import { kinds, laneKinds, notRest, rest, restShare, retried, standing, type Kind } from './row-kinds.js';
import { clock, inSight, known, unclaimed, type Table } from './rows-sql.js';
import { statement, type Places, type Statement } from './statement.js';

/** Parameters of every statement that claims. */
interface Claiming {
  readonly token: string;
  /** Length of the claim. */
  readonly claimMs: number;
  readonly limit: number;
  /** States whose deadline is kept by the clock. */
  readonly byTheClock: readonly string[];
}

/** As `inSight`, of rows at rest: fewer, so that a claim costs little more where those wait as well. */
const restInSight = 250;

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

/** Condition for the due rows of a lane of one kind, which is a condition too. */
function due({ table }: Table, kind: string, lane: string): string {
  return `${table}.lane = ${lane} AND due_at IS NOT NULL AND ${kind} AND due_at <= (SELECT now FROM clock)`;
}

/** Condition for the rows of a lane that may be claimed. */
function claimable(of: Table, kind: string, lane: string): string {
  return `${due(of, kind, lane)} AND ${unclaimed}`;
}

/** Which rows of a lane are in question. All but the kinds are SQL. */
interface Turns {
  readonly lane: string;
  readonly only: readonly Kind[];
  /** A condition. */
  readonly also: string;
  /** By which chance decides. */
  readonly token: string;
  /** Rows that stand before the first that is at rest. */
  readonly ahead: string;
}

/**
 * Up to `room` claimable rows of a lane, in the order of their turns. Locked one by one in that order; those that
 * another transaction has locked are skipped.
 */
function nextOf(of: Table, turns: Turns, room: string): string {
  const { table, key } = of;
  const { also, lane } = turns;
  // IS TRUE: only the key is to be looked up in an index here.
  return `SELECT taken.*, turn, is_at_rest FROM (${turnsOf(of, turns)}) waiting, LATERAL (
        SELECT ${key} AS key, due_at FROM ${table}
        WHERE ${key} = waiting.key AND (${claimable(of, also, lane)}) IS TRUE FOR NO KEY UPDATE SKIP LOCKED
      ) taken
      ORDER BY turn LIMIT ${room}`;
}

/**
 * The claimable rows in sight of a lane, the first of each owner before the second of any. Of an owner's rows, those
 * that have failed and those that have not take turns in the same way: so neither waits for more than as many of the
 * other. Rows that are claimed, by whichever process, are turns that their owner, or their kind, has had. Among those
 * that have had as many, chance decides, anew with each claim: by age, owners with many old rows would come first until
 * they have no more. Rows at rest take turns among themselves, and one in `restShare` of all.
 */
function turnsOf(of: Table, { lane, only, also, token, ahead }: Turns): string {
  const { table, key, owner } = of;
  const inSightOf = (kind: Kind) => {
    const some = `SELECT ${key} AS key, ${owner ?? 'NULL::text'} AS owner, ${retried.includes(kind)} AS is_retried, ${rest.includes(kind)} AS is_at_rest, ${unclaimed} AS is_free, due_at
            FROM ${table} WHERE ${due(of, `${kinds[kind]} AND ${also}`, lane)}`;
    const most = rest.includes(kind) ? restInSight : inSight;
    return `${kind}_oldest AS MATERIALIZED (${some} ORDER BY due_at LIMIT ${most}),
          ${kind}_in_sight AS (
            SELECT * FROM ${kind}_oldest
            UNION ALL
            (${some} AND due_at > (SELECT max(due_at) FROM ${kind}_oldest) ORDER BY due_at DESC LIMIT ${most})
          )`;
  };
  const all = only.map((kind) => `SELECT * FROM ${kind}_in_sight`).join(' UNION ALL ');
  return `WITH ${only.map(inSightOf).join(', ')},
          of_kind AS (
            SELECT *, row_number() OVER (PARTITION BY owner, is_at_rest, is_retried ORDER BY is_free, due_at, key) AS turn_of_kind FROM (${all}) in_sight
          ),
          numbered AS (
            SELECT key, owner, is_free, is_at_rest, row_number() OVER (
              PARTITION BY owner, is_at_rest ORDER BY is_free, turn_of_kind, is_retried = (${token}::uuid < '80000000-0000-0000-0000-000000000000')
            ) AS turn FROM of_kind
          ),
          placed AS (
            SELECT key, is_at_rest, row_number() OVER (PARTITION BY is_at_rest ORDER BY turn, md5(concat(${token}::uuid, owner))) AS place
            FROM numbered WHERE is_free
          )
        SELECT key, is_at_rest, ${standing('place', ahead)} AS turn FROM placed ORDER BY turn`;
}

/** Whether a lane has claimable rows of a kind, in these states. */
function waitsIn(of: Table, kind: Kind, lane: string, states: string): string {
  // A scalar subquery is evaluated lane by lane; EXISTS could become a join over all due rows.
  return `(SELECT true FROM ${of.table} WHERE ${claimable(of, `${kinds[kind]} AND ${known(states)}`, lane)} ORDER BY due_at LIMIT 1)`;
}

/**
 * Lanes of a kind in which this process runs no step: those after the one that was served last, then the others. A lane
 * in which rows wait at rest and others may be found for either; it is not asked which, since all lanes could be so.
 */
function idleLanes(of: Table, kind: Kind, { loads, states }: Places<ClaimingDue>): string {
  const place = laneKinds.indexOf(kind);
  const isOfRest = rest.includes(kind);
  const found = (name: string) => {
    const others = laneKinds
      .slice(0, place)
      .filter((before) => rest.includes(before) === isOfRest)
      .map((before) => ` AND ${waitsIn(of, before, `${name}.lane`, states)} IS NULL`);
    return `SELECT lane, ${place} AS lane_kind FROM ${name}
        WHERE NOT ${loads}::jsonb ? lane${isOfRest ? ' AND lane NOT IN (SELECT lane FROM idle)' : ''}
          AND ${waitsIn(of, kind, `${name}.lane`, states)}${others.join('')}`;
  };
  return `${found(`${kind}_after`)} UNION ALL ${found(`${kind}_until`)}`;
}

/** The kind of a lane that has claimable rows. */
function kindOf(of: Table, lane: string, states: string): string {
  const cases = laneKinds.map((kind, place) => `WHEN ${waitsIn(of, kind, lane, states)} THEN ${place}`);
  return `CASE ${cases.join(' ')} END`;
}

/**
 * Condition for rows past their deadline that no worker came to in the last 5 s before it, or longer, and of which no
 * try has failed. 5 s: it takes less to find a row that is due, or that a worker which died had claimed. `byTheClock`:
 * states whose deadline is kept all the same.
 */
const untried = (byTheClock: string) => `attempts = 0 AND deadline_at <= (SELECT now FROM clock)
        AND coalesce(due_at, parked_until, deadline_at) <= deadline_at - interval '5 seconds' AND state <> ALL (${byTheClock}::text[])`;

/** Looks the rows up by their keys, however many the planner expects: a join might read the whole table. */
function claimed({ table, key }: Table, { token, claimMs }: Places<Claiming>, also = ''): string {
  return `UPDATE ${table} SET claim_token = ${token}, claimed_until = clock_timestamp() + ${claimMs} * interval '1 millisecond'${also}
    WHERE ${key} = ANY (ARRAY(SELECT key FROM chosen))
    RETURNING ${table}.*, extract(epoch FROM deadline_at - clock_timestamp()) * 1000 AS left_ms`;
}

/**
 * What was untried gets one half of the time that it had left when it became due. A half: what comes to nothing time
 * and again, as its turns come late or its step ends the process, ends after a few turns.
 */
const newTime = (byTheClock: string) => `,
      deadline_at = CASE WHEN ${untried(byTheClock)} THEN clock_timestamp() + (deadline_at - due_at) / 2 ELSE deadline_at END,
      due_at = CASE WHEN ${untried(byTheClock)} THEN clock_timestamp() ELSE due_at END`;

interface ClaimingDue extends Claiming {
  /** Room of the lanes that `loads` does not name. */
  readonly room: number;
  /** JSON: lane → [running steps, room]. */
  readonly loads: string;
  /** The lane that was served last, of each kind. */
  readonly cursors: readonly string[];
  /** Rows that go before the first that is at rest: less than `restShare`, by chance. */
  readonly ahead: number;
  /** The position up to which rows other than the first of their lane may be claimed. */
  readonly spare: number;
  /** Those of the definition. */
  readonly states: readonly string[];
}

/** Claims due rows. */
export function claimDueSql(of: Table, given: ClaimingDue): Statement {
  return statement(given, (at) => {
    const idle = (those: readonly Kind[]) => those.map((kind) => idleLanes(of, kind, at)).join(' UNION ALL ');
    const turns = {
      lane: 'visited.lane',
      only: laneKinds,
      also: known(at.states),
      token: at.token,
      ahead: `${at.ahead}::int`,
    };
    const lanes = laneKinds.flatMap((kind, place) => {
      const cursor = `(${at.cursors}::text[])[${place + 1}]`;
      return [
        lanesOf(of, `${kind}_after`, kinds[kind], `lane > ${cursor}`),
        lanesOf(of, `${kind}_until`, kinds[kind], `lane <= ${cursor}`),
      ];
    });
    return `WITH RECURSIVE ${clock},
    ${lanes.join(',\n    ')},
    idle AS MATERIALIZED (SELECT * FROM (${idle(notRest)}) idle LIMIT ${at.limit}),
    idle_at_rest AS MATERIALIZED (
      SELECT * FROM (${idle(rest)}) idle LIMIT (SELECT GREATEST(${at.limit}::int - count(*), ceil((${at.limit}::int - ${turns.ahead}) / ${restShare}.0)) FROM idle)
    ),
    visited AS MATERIALIZED (
      SELECT lane, lane_kind, 0 AS under_way, ${at.room}::int AS room FROM (SELECT * FROM idle UNION ALL SELECT * FROM idle_at_rest) idle
      UNION ALL
      SELECT busy.lane, ${kindOf(of, 'busy.lane', at.states)}, (load->>0)::int, (load->>1)::int
      FROM jsonb_each(${at.loads}) busy (lane, load) WHERE (load->>1)::int > 0
    ),
    candidates AS MATERIALIZED (
      SELECT visited.*, candidate.* FROM visited, LATERAL (${nextOf(of, turns, 'visited.room')}) candidate
    ),
    placed AS (
      SELECT *, under_way + row_number() OVER (PARTITION BY lane ORDER BY turn) AS place FROM candidates
    ),
    alike AS (
      SELECT *, row_number() OVER (PARTITION BY place, is_at_rest ORDER BY lane_kind, due_at, key) AS of_its_kind FROM placed
    ),
    ordered AS (
      SELECT key, lane_kind, place, row_number() OVER (ORDER BY place, ${standing('of_its_kind', turns.ahead)}) AS turn FROM alike
    ),
    chosen AS MATERIALIZED (SELECT key, lane_kind FROM ordered WHERE turn <= ${at.limit} AND (place = 1 OR turn <= ${at.spare})),
    claimed AS (${claimed(of, at, newTime(at.byTheClock))})
    SELECT claimed.*, lane_kind FROM claimed JOIN chosen ON ${of.key} = chosen.key`;
  });
}

interface ClaimingOverdue extends Claiming {
  /** States that get a late try. */
  readonly givesBack: readonly string[];
  /** Lanes that hang. */
  readonly hanging: readonly string[];
  /** Those of the definition. */
  readonly states: readonly string[];
}

/** Claims rows past their deadline. */
export function claimOverdueSql(of: Table, given: ClaimingOverdue): Statement {
  const { table, key } = of;
  return statement(given, (at) => {
    const isLate = `state = ANY (${at.givesBack}::text[]) OR ${untried(at.byTheClock)}`;
    return `WITH ${clock},
    chosen AS MATERIALIZED (
      SELECT ${key} AS key FROM ${table}
      WHERE deadline_at <= (SELECT now FROM clock) AND ${unclaimed} AND ${known(at.states)}
        AND NOT (attempts = 0 AND lane <> ALL (${at.hanging}::text[]) AND (${isLate}))
      ORDER BY deadline_at LIMIT ${at.limit} FOR NO KEY UPDATE SKIP LOCKED
    )
    ${claimed(of, at)}`;
  });
}

/** Claims more rows of one lane and state, which is at rest or not. */
export function claimAlikeSql(
  of: Table,
  given: Claiming & { readonly lane: string; readonly state: string },
  kind: 'fresh' | 'fresh_rest',
): Statement {
  return statement(given, (at) => {
    const also = `${kinds[kind]} AND state = ${at.state}`;
    return `WITH ${clock},
    chosen AS MATERIALIZED (${nextOf(of, { lane: at.lane, only: [kind], also, token: at.token, ahead: '0' }, at.limit)})
    ${claimed(of, at, newTime(at.byTheClock))}`;
  });
}
