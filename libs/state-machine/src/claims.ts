import { randomUUID } from 'node:crypto';
import { Statements } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { claimDueSql, claimOverdueSql, unparkSql } from './claims-sql.js';
import type { DurableMachine } from './durable-machine.js';
import type { Lanes } from './lanes.js';
import type { MachineRow } from './machine-row.js';
import { touchSql } from './touch-rows.js';

export interface Claim<Row> {
  /** As it was claimed. */
  readonly row: Row;
  /** Milliseconds until its deadline, by the database's clock: fractional, `Infinity` without one; 0 or less: it has passed. */
  readonly leftMs: number;
  /** By `performance.now()`: when the statement that claimed it was sent. The claim holds at least `claimMs` from then. */
  readonly sentAtMs: number;
}

/** The lanes served last, so that lanes take turns where more are waiting than can be served at once. */
interface Cursor {
  readonly fresh: string;
  readonly retried: string;
}

const start: Cursor = { fresh: '', retried: '' };

/** When a row that is released is due again: as it stands, not by itself, or in so many milliseconds (its deadline at most). */
export type Due = 'as it is' | 'not by itself' | { readonly inMs: number };

/** In which lane it goes on: the same; the next of its lanes, this one being done; or the next, and in this one after the others. */
export type LaneChange = 'same' | 'done' | 'later';

const laneChanges: Record<LaneChange, string> = {
  same: '',
  done: `lane = coalesce(further_lanes[1], ''), further_lanes = further_lanes[2:]`,
  later: `lane = coalesce(further_lanes[1], lane),
    further_lanes = CASE WHEN further_lanes = '{}' THEN further_lanes ELSE array_append(further_lanes[2:], lane) END`,
};

/** The claims of workers on the rows of one machine: made, held against, and given up. All instants are the database's. */
export class Claims<Row extends MachineRow, State extends string, Event extends string> {
  private readonly statements: Statements;
  private cursor = start;

  constructor(
    private readonly machine: DurableMachine<Row, State, Event>,
    private readonly dataSource: DataSource,
    private readonly claimMs: number,
  ) {
    this.statements = new Statements(dataSource);
  }

  /** Has rows wait in their lanes that were parked until now. */
  async unpark(): Promise<void> {
    await this.statements.query(this.named('unpark'), unparkSql(this.machine), []);
  }

  /** As `touchRows`, of rows that a sweep found. */
  async touch(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.statements.query(this.named('touch'), touchSql(this.machine), [keys, null]);
  }

  /**
   * Up to `limit` rows that are due, lanes in turn: the first row of every lane before the second of any; and in a
   * lane, rows that have not failed before those that have. After a move by another transaction the claim of a step
   * that is still under way holds, so that the next step does not meet what that one is doing.
   */
  async make(limit: number, lanes: Lanes): Promise<Claim<Row>[]> {
    const { spare, room, loads } = lanes.loads();
    const { fresh, retried } = this.cursor;
    const made = await this.claim('claim', claimDueSql(this.machine), [limit, room, JSON.stringify(loads), fresh, retried, spare]);
    this.cursor = made.length < limit ? start : { fresh: lastLane(made, false, fresh), retried: lastLane(made, true, retried) };
    return made;
  }

  /**
   * Rows whose deadline has passed, whatever goes on in their lanes: they are given up without a step. Left out are
   * those of a state with `givesBack` that were never tried, unless their lane is known to hang.
   */
  async makeOverdue(limit: number, lanes: Lanes): Promise<Claim<Row>[]> {
    const givingBack = [...this.machine.definition.states].flatMap(([state, { rule }]) => (rule?.givesBack ? [state] : []));
    return this.claim('overdue', claimOverdueSql(this.machine), [limit, givingBack, lanes.hanging]);
  }

  /** The row, locked, if the claim is still this one; and whether its deadline has passed. */
  async held(manager: EntityManager, row: Row): Promise<{ row: Row; isOverdue: boolean } | undefined> {
    const { table, key } = this.machine;
    const [held] = await manager.query<(object & { is_overdue: boolean })[]>(
      `SELECT *, coalesce(deadline_at <= clock_timestamp(), false) AS is_overdue FROM ${table}
       WHERE ${key} = $1 AND claim_token = $2 FOR NO KEY UPDATE`,
      [this.machine.keyOf(row), row.claimToken],
    );
    return held && { row: this.machine.rowOf(held), isOverdue: held.is_overdue };
  }

  /** Gives up the claim on a row that is locked. */
  async release(manager: EntityManager, row: Row, values: Partial<MachineRow>, due: Due, lane: LaneChange = 'same'): Promise<void> {
    const { table, key } = this.machine;
    const set = this.machine.columnsOf({ ...values, claimToken: null, claimedUntil: null });
    const parameters = [this.machine.keyOf(row), ...set.values()];
    const assignments = [...set.keys()].map((name, at) => `${name} = $${at + 2}`);
    if (laneChanges[lane]) assignments.push(laneChanges[lane]);
    if (due === 'not by itself') assignments.push('due_at = NULL', 'parked_until = NULL');
    else if (due !== 'as it is' && due.inMs <= 0) assignments.push('due_at = clock_timestamp()', 'parked_until = NULL');
    else if (due !== 'as it is') {
      parameters.push(due.inMs);
      const until = `clock_timestamp() + $${parameters.length} * interval '1 millisecond'`;
      assignments.push('due_at = NULL', `parked_until = LEAST(${until}, deadline_at)`);
    }
    await manager.query(`UPDATE ${table} SET ${assignments.join(', ')} WHERE ${key} = $1`, parameters);
  }

  /**
   * The step of a claim on a row that another transaction has moved meanwhile has ended: the row's next step may
   * begin. Returns whether that was so. `until`: when the claim runs out, as far as this process knows.
   */
  async endSuperseded(row: Row, until: Date | null): Promise<boolean> {
    const { table, key } = this.machine;
    const [, count] = await this.dataSource.query<[unknown, number]>(
      `UPDATE ${table} SET claimed_until = NULL WHERE ${key} = $1 AND claim_token IS NULL AND claimed_until <= $2`,
      [this.machine.keyOf(row), until],
    );
    return count > 0;
  }

  private async claim(name: string, sql: string, parameters: unknown[]): Promise<Claim<Row>[]> {
    const sentAtMs = performance.now();
    const rows = await this.statements.query<object & { left_ms: string | null }>(this.named(name), sql, [
      randomUUID(),
      this.claimMs,
      ...parameters,
    ]);
    return rows.map((raw) => ({
      row: this.machine.rowOf(raw),
      leftMs: raw.left_ms === null ? Infinity : Number(raw.left_ms),
      sentAtMs,
    }));
  }

  /** A name for a prepared statement: to plan one of these takes longer than to run it. */
  private named(name: string): string {
    return `machines.${this.machine.table}.${name}`;
  }
}

/** The lane that was served last, of those that began after `from` and went on from the first to `from`. */
function lastLane(made: readonly Claim<MachineRow>[], isRetried: boolean, from: string): string {
  const served = made.filter(({ row }) => row.attempts > 0 === isRetried).map(({ row }) => row.lane);
  const second = served.filter((lane) => lane <= from);
  return (second.length > 0 ? second : [from, ...served]).reduce((last, lane) => (lane > last ? lane : last), '');
}
