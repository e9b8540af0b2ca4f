import { randomUUID } from 'node:crypto';
import { Statements } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { beginSql } from './begin-sql.js';
import { claimAlikeSql, claimDueSql, claimOverdueSql } from './claims-sql.js';
import { unparkSql } from './due-sql.js';
import type { DurableMachine } from './durable-machine.js';
import type { Lanes } from './lanes.js';
import type { MachineRow } from './machine-row.js';
import { laneKinds, restShare } from './row-kinds.js';
import { parameters, type Statement } from './statement.js';
import { touchSql } from './touch-rows.js';

export interface Claim<Row> {
  /** The row as it was claimed. */
  readonly row: Row;
  /**
   * Milliseconds until the deadline, by the database's clock; fractional. `Infinity` without a deadline, 0 or less
   * after it.
   */
  readonly leftMs: number;
  /** When the claim was requested, by `performance.now()`. The claim holds for at least `claimMs` from then. */
  readonly sentAtMs: number;
  /** Of a row that `make` has claimed: the place of its lane's kind in `laneKinds`. */
  readonly laneKind: number;
}

/** The lane of each kind that was served last, so that lanes take turns where more wait than can be served at once. */
const start = laneKinds.map(() => '');

/**
 * When a released row is due again: unchanged, only after a touch, or after so many milliseconds (at its deadline at
 * the latest).
 */
export type Due = 'as it is' | 'not by itself' | { readonly inMs: number };

/**
 * The lane in which a released row continues: the same; the next, because this one is done; or the next, and this one
 * after the others.
 */
export type LaneChange = 'same' | 'done' | 'later';

const laneChanges: Record<LaneChange, string> = {
  same: '',
  done: `lane = coalesce(further_lanes[1], ''), further_lanes = further_lanes[2:]`,
  later: `lane = coalesce(further_lanes[1], lane),
    further_lanes = CASE WHEN further_lanes = '{}' THEN further_lanes ELSE array_append(further_lanes[2:], lane) END`,
};

/**
 * Claims on the rows of one machine: made, checked and released by SQL. All instants are by the database's clock. Rows
 * in states that the definition does not have, because a worker of another release wrote them, are left to that
 * release.
 */
export class Claims<Row extends MachineRow, State extends string, Event extends string> {
  private readonly statements: Statements;
  private cursors: readonly string[] = start;

  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    private readonly dataSource: DataSource,
    private readonly claimMs: number,
  ) {
    this.statements = new Statements(dataSource);
  }

  /** Makes rows due whose `parkedUntil` has passed. */
  async unpark(): Promise<void> {
    await this.send(unparkSql(this.machine, this.machine.states));
  }

  /** Touches rows that a sweep has found. Returns whether there were any. */
  async touch(keys: readonly string[]): Promise<boolean> {
    if (keys.length > 0) await this.send(touchSql(this.machine, { keys, states: null }));
    return keys.length > 0;
  }

  /**
   * Begins up to `limit` rows of each state with a portion, and those that are urgent. Returns whether there were any.
   */
  async begin(limit: number): Promise<boolean> {
    let begun = 0;
    for (const state of this.machine.portioned) {
      const { portion = 0, deadlineMs = 0 } = this.machine.ruleOf(state) ?? {};
      const begin = beginSql(this.machine, state, { portion, deadlineMs, limit });
      begun += (await this.send(begin)).length;
    }
    return begun > 0;
  }

  /**
   * Claims up to `limit` due rows: the first row of every lane before the second row of any, and among lanes that are
   * served alike those that have a row that has not failed before the others. In each lane owners take turns, and of an
   * owner's rows those that have failed and those that have not. Rows at rest, and lanes that have no others, come
   * after those that are under way, but for one in `restShare`. A row that was moved while its step runs is claimed
   * after that step has ended. A row that nobody came to for long before its deadline, and whose state is not
   * `byTheClock`, gets one half of the time that it had left when it became due.
   */
  async make(limit: number, lanes: Lanes): Promise<Claim<Row>[]> {
    const { spare, room, loads } = lanes.loads();
    const made = await this.claim(
      claimDueSql(this.machine, {
        ...this.claiming(limit),
        room,
        loads: JSON.stringify(loads),
        cursors: this.cursors,
        ahead: Math.floor(Math.random() * restShare),
        spare,
        states: this.machine.states,
      }),
    );
    this.cursors = made.length < limit ? start : this.cursors.map((from, kind) => lastLane(made, kind, from));
    return made;
  }

  /**
   * Claims up to `limit` rows that are past their deadline, regardless of lanes, because they are given up without a
   * step. Leaves out rows that get a late try (`givesBack`), and those that nobody came to for long before it.
   */
  async makeOverdue(limit: number, lanes: Lanes): Promise<Claim<Row>[]> {
    return this.claim(
      claimOverdueSql(this.machine, {
        ...this.claiming(limit),
        givesBack: this.statesWith('givesBack'),
        hanging: lanes.hanging,
        states: this.machine.states,
      }),
    );
  }

  /** Claims up to `limit` more rows that are due in the lane and the state of a claimed one and have not failed yet. */
  async makeAlike({ row }: Claim<Row>, limit: number): Promise<Claim<Row>[]> {
    const { lane, state } = row;
    const kind = this.machine.ruleOf(state) ? 'fresh' : 'fresh_rest';
    return this.claim(claimAlikeSql(this.machine, { ...this.claiming(limit), lane, state }, kind));
  }

  /**
   * Locks those of the rows whose claims still hold and returns them, each with whether it is past its deadline. The
   * keys stand in subqueries: where the planner sees how few there are, it makes a plan for each call, which takes
   * longer than the call.
   */
  async held(manager: EntityManager, rows: readonly Row[]): Promise<{ row: Row; isOverdue: boolean }[]> {
    const { table, key, keyType } = this.machine;
    const held = await manager.query<(object & { is_overdue: boolean })[]>(
      `SELECT ${table}.*, coalesce(deadline_at <= clock_timestamp(), false) AS is_overdue
       FROM ${table} JOIN unnest((SELECT $1::${keyType}[]), (SELECT $2::uuid[])) claimed (key, token) ON ${key} = claimed.key AND claim_token = claimed.token
       ORDER BY ${key} FOR NO KEY UPDATE OF ${table}`,
      [rows.map((row) => this.machine.keyOf(row)), rows.map(({ claimToken }) => claimToken)],
    );
    return held.map((raw) => ({ row: this.machine.rowOf(raw), isOverdue: raw.is_overdue }));
  }

  /** Releases the claim on a locked row. */
  async release(
    manager: EntityManager,
    row: Row,
    values: Partial<MachineRow>,
    due: Due,
    lane: LaneChange = 'same',
  ): Promise<void> {
    const { table, key } = this.machine;
    const set = this.machine.columnsOf({ ...values, claimToken: null, claimedUntil: null });
    const { add, values: given } = parameters();
    const assignments = [...set].map(([name, value]) => `${name} = ${add(value)}`);
    if (laneChanges[lane]) assignments.push(laneChanges[lane]);
    if (due === 'not by itself') assignments.push('due_at = NULL', 'parked_until = NULL');
    else if (due !== 'as it is' && due.inMs <= 0) assignments.push('due_at = clock_timestamp()', 'parked_until = NULL');
    else if (due !== 'as it is') {
      const until = `clock_timestamp() + ${add(due.inMs)} * interval '1 millisecond'`;
      assignments.push('due_at = NULL', `parked_until = LEAST(${until}, deadline_at)`);
    }
    const found = `${key} = ${add(this.machine.keyOf(row))}`;
    await manager.query(`UPDATE ${table} SET ${assignments.join(', ')} WHERE ${found}`, given);
  }

  /**
   * Lets the next step of a row begin, after another transaction has moved the row and the aborted step has ended.
   * Returns whether the row was in that situation. `until`: when the claim expires, as far as this process knows.
   */
  async endSuperseded(row: Row, until: Date | null): Promise<boolean> {
    const { table, key } = this.machine;
    const [, count] = await this.dataSource.query<[unknown, number]>(
      `UPDATE ${table} SET claimed_until = NULL WHERE ${key} = $1 AND claim_token IS NULL AND claimed_until <= $2`,
      [this.machine.keyOf(row), until],
    );
    return count > 0;
  }

  /** Parameters of every claim. */
  private claiming(limit: number) {
    return { token: randomUUID(), claimMs: this.claimMs, limit, byTheClock: this.statesWith('byTheClock') };
  }

  private async claim(claim: Statement): Promise<Claim<Row>[]> {
    const sentAtMs = performance.now();
    const rows = await this.send<object & { left_ms: string | null; lane_kind?: number }>(claim);
    return rows.map((raw) => ({
      row: this.machine.rowOf(raw),
      leftMs: raw.left_ms === null ? Infinity : Number(raw.left_ms),
      sentAtMs,
      laneKind: raw.lane_kind ?? 0,
    }));
  }

  private statesWith(flag: 'givesBack' | 'byTheClock'): string[] {
    return [...this.machine.definition.states].flatMap(([state, { rule }]) => (rule?.[flag] ? [state] : []));
  }

  /** Prepared, since planning one of these takes longer than running it. */
  private send<Raw extends object>({ text, values }: Statement): Promise<Raw[]> {
    return this.statements.query<Raw>(text, values);
  }
}

/** The lane that was served last, in the order that begins after `from` and wraps around to it. */
function lastLane(made: readonly Claim<MachineRow>[], kind: number, from: string): string {
  const served = made.filter(({ laneKind }) => laneKind === kind).map(({ row }) => row.lane);
  const second = served.filter((lane) => lane <= from);
  return (second.length > 0 ? second : [from, ...served]).reduce((last, lane) => (lane > last ? lane : last), '');
}
