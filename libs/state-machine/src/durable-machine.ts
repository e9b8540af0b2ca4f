import type { DataSource, EntityManager } from 'typeorm';
import { bellOf, ringAfterCommit } from './bells.js';
import type { MachineDefinition, TransientRule } from './definition.js';
import type { Cause, MachineError, MachineRow } from './machine-row.js';
import { MachineTable, type Machine } from './machine-table.js';
import { touchRows } from './touch-rows.js';

/** What a step found out. */
export type Outcome<Row, Event extends string> =
  /** The event happened. `reason` is kept as the last error. */
  | { event: Event; reason?: Omit<MachineError, 'at'> }
  /** What is to happen shows only under the lock: `decide` moves the row, or says false and it rests. */
  | { decide(manager: EntityManager, row: Row): Promise<boolean> }
  /** Nothing happened yet: look again then. No try is counted. */
  | { againAfterMs: number; reason?: Omit<MachineError, 'at'> }
  /** What belongs to this lane is done: the step goes on in the next of `furtherLanes`. Only where there is one. */
  | 'lane done'
  /** There is nothing to do here: for stable states that were looked at once. */
  | 'rest';

/** How a row came into its state. */
export interface Passage<State, Event> {
  readonly from: State;
  readonly event: Event;
  readonly cause: Cause;
}

export interface StepContext {
  /**
   * Aborted when the step has taken too long, when its deadline passes, when its claim is lost, or at a shutdown. What
   * it answers then is discarded. Read it anew before each call to the outside, and give it to the call: after the
   * process was frozen it is aborted when it is read, before another worker's work is disturbed.
   */
  readonly signal: AbortSignal;
}

/**
 * A definition made durable on one table: each row is an instance. A feature extends it with the steps of its transient states, which do work outside
 * of any transaction, and with what commits together with the entry into a state.
 */
export abstract class DurableMachine<
  Row extends MachineRow,
  State extends string = string,
  Event extends string = string,
> extends MachineTable<Row> {
  readonly definition: MachineDefinition<State, Event>;

  constructor(
    private readonly dataSource: DataSource,
    private readonly machine: Machine<Row, State, Event>,
  ) {
    super(dataSource, machine.entity);
    this.definition = machine.definition;
  }

  /**
   * SQL over the columns of the table, a `text[]`: the lanes in which the step of a row is done, one after the other,
   * such as the nodes that it has to talk to. Evaluated as a row comes into a state that has a step, and by
   * `assignLanes`. A lane that hangs holds up no row of another lane, and its own only by the few steps that it may
   * have under way. Rows without a lane share one.
   */
  protected abstract readonly lanes: string;

  /** Does the work of the state the row is in. Throws `StepFailed`; any other error counts as one worth another try. Safe to run twice. */
  abstract step(row: Row, context: StepContext): Promise<Outcome<Row, Event>>;

  /** What else happens, in the same transaction, when a row has come into its state. The database only. */
  protected entered(_manager: EntityManager, _row: Row, _passage: Passage<State, Event>): Promise<void> {
    return Promise.resolve();
  }

  /** `entered` for all rows that one event has moved from one state to another. Overridden where one statement does for many. */
  protected async enteredAll(manager: EntityManager, rows: readonly Row[], passage: Passage<State, Event>): Promise<void> {
    for (const row of rows) await this.entered(manager, row, passage);
  }

  /** Inserts a row in the initial state, its deadline armed, and the first line of its history. Calls no `entered`. */
  async insert(manager: EntityManager, values: Partial<Row>, cause: Cause): Promise<Row> {
    const [row] = await this.insertAll(manager, [{ values, cause }]);
    if (!row) throw new Error(`No row was inserted into ${this.table}.`);
    return row;
  }

  /** As `insert`, for any number of rows that give the same columns: one statement. Returns them in the order of `all`. */
  async insertAll(manager: EntityManager, all: readonly { values: Partial<Row>; cause: Cause }[]): Promise<Row[]> {
    if (all.length === 0) return [];
    const { initial } = this.definition;
    const given = all.map(({ values, cause }) => ({
      ...Object.fromEntries(this.columnsOf({ ...values, state: initial, requestId: cause.requestId ?? null }, 'json')),
      actor: cause.actor,
      reason: cause.reason ?? null,
    }));
    const names = [...this.columnsOf({ ...all[0]?.values, state: initial, requestId: null }).keys()];
    const rows = await manager.query<object[]>(
      `WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
       given AS MATERIALIZED (SELECT value, place FROM json_array_elements($2::json) WITH ORDINALITY given (value, place)),
       begun AS (
         INSERT INTO ${this.table} (${[...names, 'entered_at', 'deadline_at', 'due_at', 'lane', 'further_lanes'].join(', ')})
         SELECT ${names.map((name) => `${this.table}.${name}`).join(', ')}, ${this.armed(initial, 'now')}, assigned.*
         FROM clock, given, json_populate_record(NULL::${this.table}, value) ${this.table}, LATERAL (${this.assigned}) assigned
         ORDER BY place RETURNING *
       ), numbered AS (
         SELECT begun.*, row_number() OVER (ORDER BY ${this.key}) AS place FROM begun
       ), recorded AS (
         INSERT INTO machine_history (machine, instance, to_state, actor, reason, request_id, at)
         SELECT $1, ${this.key}, state, value->>'actor', value->>'reason', request_id, entered_at FROM numbered JOIN given USING (place) ORDER BY place
       )
       SELECT * FROM begun ORDER BY ${this.key}`,
      [this.definition.id, JSON.stringify(given)],
    );
    ringAfterCommit(manager, this.table);
    return rows.map((row) => this.rowOf(row));
  }

  /** Locks the row until the transaction ends; undefined where there is none. */
  async lock(manager: EntityManager, key: string): Promise<Row | undefined> {
    const [row] = await manager.query<object[]>(`SELECT * FROM ${this.table} WHERE ${this.key} = $1 FOR NO KEY UPDATE`, [key]);
    return row && this.rowOf(row);
  }

  /** `lock`, then `move`: undefined where there is no such row, or the event changes nothing in its state. */
  async send(manager: EntityManager, key: string, event: Event, cause: Cause, values: Partial<Row> = {}): Promise<Row | undefined> {
    const row = await this.lock(manager, key);
    return row && this.move(manager, row, event, cause, values);
  }

  /**
   * Moves a row that this transaction has locked, and writes its history; undefined where the event changes nothing in its state. What a step is doing that
   * is under way comes to nothing; the next step waits until it has ended.
   */
  async move(
    manager: EntityManager,
    row: Row,
    event: Event,
    cause: Cause,
    values: Partial<Row> = {},
    error: Omit<MachineError, 'at'> | null = null,
  ): Promise<Row | undefined> {
    const [moved] = await this.moveAll(manager, [row], event, cause, values, error);
    return moved;
  }

  /** As `move`, for any number of rows: one statement for those of one state. Returns those that were moved. */
  async moveAll(
    manager: EntityManager,
    rows: readonly Row[],
    event: Event,
    cause: Cause,
    values: Partial<Row> = {},
    error: Omit<MachineError, 'at'> | null = null,
  ): Promise<Row[]> {
    const moved: Row[] = [];
    for (const [from, those] of Map.groupBy(rows, ({ state }) => state as State)) {
      const to = this.definition.next(from, event);
      if (to === undefined) continue;
      const lastError = error && { ...error, at: new Date().toISOString() };
      const set = this.columnsOf({ ...values, state: to, lastError });
      const raw = await manager.query<object[]>(
        `WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
         moved AS (
           UPDATE ${this.table} SET (entered_at, deadline_at, due_at) = (SELECT ${this.armed(to, 'GREATEST(now, entered_at)')} FROM clock),
             ${this.hasStep(to) ? `(lane, further_lanes) = (${this.assigned}),` : ''}
             parked_until = NULL, attempts = 0, claim_token = NULL, revision = revision + 1, request_id = coalesce($7, request_id),
             ${[...set.keys()].map((name, at) => `${name} = $${at + 8}`).join(', ')}
           WHERE ${this.key} = ANY ($1) RETURNING *
         ), recorded AS (
           INSERT INTO machine_history (machine, instance, from_state, to_state, event, actor, reason, request_id, at)
           SELECT $2, ${this.key}, $3, state, $4, $5, $6, request_id, entered_at FROM moved
         )
         SELECT * FROM moved ORDER BY ${this.key}`,
        [
          those.map((row) => this.keyOf(row)),
          this.definition.id,
          from,
          event,
          cause.actor,
          cause.reason ?? error?.message ?? null,
          cause.requestId ?? null,
          ...set.values(),
        ],
      );
      const arrived = raw.map((row) => this.rowOf(row));
      await this.enteredAll(manager, arrived, { from, event, cause });
      moved.push(...arrived);
    }
    if (moved.length > 0) ringAfterCommit(manager, this.table);
    return moved;
  }

  /** Assigns lanes anew to rows that this transaction inserted or has locked, after it wrote what `lanes` reads. */
  async assignLanes(manager: EntityManager, keys: readonly string[]): Promise<void> {
    await manager.query(`UPDATE ${this.table} SET (lane, further_lanes) = (${this.assigned}) WHERE ${this.key} = ANY ($1)`, [keys]);
  }

  /** Leaves a row that this transaction has locked alone for so many milliseconds; a worker runs its step then. */
  async park(manager: EntityManager, row: Row, forMs: number): Promise<void> {
    await manager.query(
      `UPDATE ${this.table} SET due_at = NULL, parked_until = clock_timestamp() + $2 * interval '1 millisecond' WHERE ${this.key} = $1`,
      [this.keyOf(row), forMs],
    );
  }

  /** As `touchRows`, of this machine. */
  async touch(manager: EntityManager, keys: readonly string[], states?: readonly State[]): Promise<void> {
    await touchRows(manager, this.machine, keys, states);
  }

  /**
   * Keys of rows of which something is to be done that no touch has told of: found by one look at all rows, whose cost
   * does not grow with the rows of which nothing is to be done. Each process asks every `sweepMs`, and runs their steps.
   */
  sweep(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  ruleOf(state: string): TransientRule | undefined {
    return this.definition.states.get(state as State)?.rule;
  }

  /** `ring` is called when a transaction of this process has committed by which something may be due. */
  onDue(ring: () => void): void {
    bellOf(this.dataSource, this.table).listeners.add(ring);
  }

  /** For a step, which is outside of any transaction. */
  protected query<Result extends object>(sql: string, values: unknown[]): Promise<Result[]> {
    return this.dataSource.query<Result[]>(sql, values);
  }

  /** entered_at, deadline_at and due_at for a row that comes into the state at the instant `now`, an expression. */
  private armed(state: State, now: string): string {
    const rule = this.ruleOf(state);
    const deadlineAt = rule ? `${now} + interval '${rule.deadlineMs} milliseconds'` : 'NULL::timestamptz';
    return `${now}, ${deadlineAt}, ${this.hasStep(state) ? now : 'NULL::timestamptz'}`;
  }

  private hasStep(state: State): boolean {
    return this.ruleOf(state) !== undefined || this.definition.states.get(state)?.isReviewed === true;
  }

  /** Lane and further lanes of a row, from its columns. */
  private get assigned(): string {
    return `SELECT coalesce(assigned[1], ''), coalesce(assigned[2:], '{}') FROM (SELECT ${this.lanes}) all_lanes (assigned)`;
  }
}
