import { Statements } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { armedSql } from './armed-sql.js';
import { dueSignalOf, signalAfterCommit } from './due-signals.js';
import { beginNowSql } from './begin-sql.js';
import type { MachineDefinition, TransientRule } from './definition.js';
import type { Cause, MachineError, MachineRow } from './machine-row.js';
import { MachineTable, type Machine, type SetValues } from './machine-table.js';
import type { Outcome, Passage, StepContext } from './outcome.js';
import { parameters } from './statement.js';
import { touchRows } from './touch-rows.js';

/**
 * Makes a machine durable on its table: each row is an instance. A feature extends it with the steps of its transient
 * states, which run outside of any transaction, and with `entered`, which commits together with a transition.
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
   * SQL expression over the columns of the table, of type `text[]`: the lanes of a row, in the order in which its step
   * visits them, such as the nodes it has to talk to. Evaluated when a row enters a state that has a step, and by
   * `assignLanes`, which is called after the insertion of a row whose lanes are named after a key that the database
   * gives. Steps of one lane share a concurrency limit, so a lane that hangs delays no other lane. Rows whose array is
   * empty share one lane.
   */
  protected abstract readonly lanes: string;

  /**
   * SQL expression over the columns of the table: whose a row is, such as its team. Owners take turns in each lane, so
   * that one with many rows delays the others by a step or so, as do its rows that have failed and its others. Those of
   * either kind go in the order in which they became due. Null: all rows are of one owner.
   */
  readonly owner: string | null = null;

  /**
   * SQL condition over the columns of the table: which rows do not wait for their turn in a state with a `portion`,
   * since somebody needs them. Null: none. Needs a partial index on these, beside that of all that wait.
   */
  readonly urgent: string | null = null;

  /**
   * Does the work of the row's state. Must be safe to run twice. Throws `StepFailed`; any other error is logged and
   * retried. It is not called in final states: a row that was made due there is put to rest.
   */
  abstract step(row: Row, context: StepContext): Promise<Outcome<Row, Event>>;

  /** States whose steps run for many rows of one lane at once, by `stepAll`. For steps that cost less so. */
  readonly steppedTogether: readonly State[] = [];

  /**
   * Runs the step of several rows of one lane that are in one of `steppedTogether`. Returns an outcome for each, in
   * their order. Where it throws, the step of each row runs by itself, so that no row fails because of another.
   */
  stepAll(_rows: readonly Row[], _context: StepContext): Promise<Outcome<Row, Event>[]> {
    return Promise.reject(new Error(`Steps of ${this.definition.id} do not run together.`));
  }

  /** Runs in the transaction of a transition, after the row has entered its state. May use the database only. */
  protected entered(_manager: EntityManager, _row: Row, _passage: Passage<State, Event>): Promise<void> {
    return Promise.resolve();
  }

  /**
   * `entered` for all rows that one event has moved from the same state. Override it where one statement serves many
   * rows.
   */
  protected async enteredAll(
    manager: EntityManager,
    rows: readonly Row[],
    passage: Passage<State, Event>,
  ): Promise<void> {
    for (const row of rows) await this.entered(manager, row, passage);
  }

  /**
   * Inserts a row in the initial state, with its deadline, its lanes and the first line of its history. Does not call
   * `entered`.
   */
  async insert(manager: EntityManager, values: Partial<Row>, cause: Cause): Promise<Row> {
    const [row] = await this.insertAll(manager, [{ values, cause }]);
    if (!row) throw new Error(`No row was inserted into ${this.table}.`);
    return row;
  }

  /**
   * As `insert`, for any number of rows with the same columns, by one statement. Returns them in the order of `all`.
   */
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
         SELECT ${names.map((name) => `${this.table}.${name}`).join(', ')}, ${armedSql(this.ruleOf(initial), this.hasStep(initial), 'now')}, assigned.*
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
    signalAfterCommit(manager, this.table);
    return rows.map((row) => this.rowOf(row));
  }

  /**
   * Reads a row without locking it. Within a transaction its `manager` must be given: without it the read takes a
   * connection of its own, and does not see what the transaction has written. Undefined if there is no such row.
   */
  async find(key: string, manager?: EntityManager): Promise<Row | undefined> {
    const text = `SELECT * FROM ${this.table} WHERE ${this.key} = $1`;
    const [row] = manager ? await manager.query<object[]>(text, [key]) : await this.query<object>(text, [key]);
    return row && this.rowOf(row);
  }

  /** Locks a row until the transaction ends. Returns undefined if there is no such row. */
  async lock(manager: EntityManager, key: string): Promise<Row | undefined> {
    const [row] = await this.lockWhere(manager, `${this.key} = $1`, [key]);
    return row;
  }

  /** Locks rows until the transaction ends, in the order of their keys. Returns those that there are. */
  async lockAll(manager: EntityManager, keys: readonly string[]): Promise<Row[]> {
    return this.lockWhere(manager, `${this.key} = ANY ($1)`, [keys]);
  }

  /**
   * As `lockAll`, for the rows that meet an SQL condition with the parameters `$1`…: all of them, or the first `limit`
   * by key. The text of the condition must not depend on data.
   */
  async lockWhere(manager: EntityManager, condition: string, values: unknown[], limit?: number): Promise<Row[]> {
    const first = limit === undefined ? '' : ` LIMIT $${values.length + 1}`;
    const raw = await manager.query<object[]>(
      `SELECT * FROM ${this.table} WHERE ${condition} ORDER BY ${this.key}${first} FOR NO KEY UPDATE`,
      limit === undefined ? values : [...values, limit],
    );
    return raw.map((row) => this.rowOf(row));
  }

  /** `lock`, then `move`. Returns undefined if there is no such row, or if the event changes nothing in its state. */
  async send(
    manager: EntityManager,
    key: string,
    event: Event,
    cause: Cause,
    values: Partial<Row> = {},
  ): Promise<Row | undefined> {
    const row = await this.lock(manager, key);
    return row && this.move(manager, row, event, cause, values);
  }

  /**
   * Moves a row that this transaction has locked, and records the transition. Returns undefined if the event changes
   * nothing in its state. If a step of the row is running, it is aborted within a second and its result is discarded;
   * the step of the new state begins after it has ended.
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

  /**
   * As `move`, for any number of rows, by one statement per state. Returns the rows that were moved. A value that
   * differs from row to row is a function that returns its SQL expression.
   */
  async moveAll(
    manager: EntityManager,
    rows: readonly Row[],
    event: Event,
    cause: Cause,
    values: SetValues<Row> = {},
    error: Omit<MachineError, 'at'> | null = null,
  ): Promise<Row[]> {
    const moved: Row[] = [];
    for (const [from, those] of Map.groupBy(rows, ({ state }) => state as State)) {
      const to = this.definition.next(from, event);
      if (to === undefined) continue;
      const lastError = error && { ...error, at: new Date().toISOString() };
      const set = this.columnsOf({ ...values, state: to, lastError });
      const { add, values: given } = parameters();
      const keys = add(those.map((row) => this.keyOf(row)));
      const armed = armedSql(this.ruleOf(to), this.hasStep(to), 'GREATEST(now, entered_at)');
      const raw = await manager.query<object[]>(
        `WITH clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now),
         moved AS (
           UPDATE ${this.table} SET (entered_at, deadline_at, due_at) = (SELECT ${armed} FROM clock),
             ${this.hasStep(to) ? `(lane, further_lanes) = (${this.assigned}),` : ''}
             parked_until = NULL, attempts = 0, claim_token = NULL, revision = revision + 1, request_id = coalesce(${add(cause.requestId ?? null)}, request_id),
             ${[...set].map(([name, value]) => `${name} = ${isExpression(value) ? value() : add(value)}`).join(', ')}
           WHERE ${this.key} = ANY (ARRAY(SELECT unnest(${keys}::${this.keyType}[]))) RETURNING *
         ), recorded AS (
           INSERT INTO machine_history (machine, instance, from_state, to_state, event, actor, reason, request_id, at)
           SELECT ${add(this.definition.id)}, ${this.key}, ${add(from)}, state, ${add(event)}, ${add(cause.actor)}, ${add(cause.reason ?? error?.message ?? null)},
             request_id, entered_at FROM moved
         )
         SELECT * FROM moved ORDER BY ${this.key}`,
        given,
      );
      const arrived = raw.map((row) => this.rowOf(row));
      await this.enteredAll(manager, arrived, { from, event, cause });
      moved.push(...arrived);
    }
    if (moved.length > 0) signalAfterCommit(manager, this.table);
    return moved;
  }

  /**
   * The outcome that the event has happened, with values that follow from the row as it is under its lock. Unlike
   * `{ event }` it says nothing of the lane of the row: whether that answers has not been seen.
   */
  protected moving(
    event: Event,
    cause: Cause,
    valuesFor: (row: Row) => Partial<Row> = () => ({}),
    error: Omit<MachineError, 'at'> | null = null,
  ): Outcome<Row, Event> {
    return { decide: (manager, row) => this.move(manager, row, event, cause, valuesFor(row), error) };
  }

  /**
   * Evaluates `lanes` again for rows that this transaction has inserted or locked, after it has written what `lanes`
   * reads.
   */
  async assignLanes(manager: EntityManager, keys: readonly string[]): Promise<void> {
    await manager.query(
      `UPDATE ${this.table} SET (lane, further_lanes) = (${this.assigned}) WHERE ${this.key} = ANY ($1)`,
      [keys],
    );
  }

  /**
   * Begins those of these rows that wait in a state with a `portion`, beside it, as somebody needs them. Leaves out
   * those that another transaction has locked, so it waits for none.
   */
  async beginNow(manager: EntityManager, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    for (const state of this.portioned) {
      const { deadlineMs = 0 } = this.ruleOf(state) ?? {};
      const { text, values } = beginNowSql(this, state, { keys, deadlineMs });
      const [, begun] = await manager.query<[unknown, number]>(text, values);
      if (begun > 0) signalAfterCommit(manager, this.table);
    }
  }

  /** Postpones the step of a row that this transaction has locked: a worker runs it after so many milliseconds. */
  async park(manager: EntityManager, row: Row, forMs: number): Promise<void> {
    await this.parkAll(manager, [row], forMs);
  }

  /** As `park`, for any number of rows by one statement. */
  async parkAll(manager: EntityManager, rows: readonly Row[], forMs: number): Promise<void> {
    if (rows.length === 0) return;
    await manager.query(
      `UPDATE ${this.table} SET due_at = NULL, parked_until = clock_timestamp() + $2 * interval '1 millisecond'
       WHERE ${this.key} = ANY ($1::${this.keyType}[])`,
      [rows.map((row) => this.keyOf(row)), forMs],
    );
  }

  /** As `touchRows`, for this machine. */
  async touch(manager: EntityManager, keys: readonly string[], states?: readonly State[]): Promise<void> {
    await touchRows(manager, this.machine, keys, states);
  }

  /**
   * Finds rows that need their step although nothing has touched them, by a query whose cost does not grow with the
   * number of idle rows. Called by each process every `sweepMs`; the rows whose keys it returns are touched.
   */
  sweep(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  /** All states of the definition. Workers leave rows in other states as they are. */
  get states(): readonly string[] {
    return [...this.definition.states.keys()];
  }

  /** States of which a portion is under way at a time. */
  get portioned(): readonly string[] {
    return this.states.filter((state) => this.ruleOf(state)?.portion !== undefined);
  }

  ruleOf(state: string): TransientRule | undefined {
    return this.definition.states.get(state as State)?.rule;
  }

  /** Registers `listener` to be called after this process has committed a transaction that may have made rows due. */
  onDue(listener: () => void): void {
    dueSignalOf(this.dataSource, this.table).listeners.add(listener);
  }

  /**
   * Queries outside of any transaction, for steps and sweeps. Each text is prepared once a connection, so there must
   * not be texts without end. Returns the rows of whatever statement.
   */
  protected query<Result extends object>(sql: string, values: unknown[]): Promise<Result[]> {
    return new Statements(this.dataSource).query<Result>(sql, values);
  }

  private hasStep(state: State): boolean {
    return this.ruleOf(state) !== undefined || this.definition.states.get(state)?.isReviewed === true;
  }

  /** SQL for lane and further_lanes of a row. */
  private get assigned(): string {
    return `SELECT coalesce(assigned[1], ''), coalesce(assigned[2:], '{}') FROM (SELECT ${this.lanes}) all_lanes (assigned)`;
  }
}

/** A value of `SetValues` that is a function; no column holds one. */
function isExpression(value: unknown): value is () => string {
  return typeof value === 'function';
}
