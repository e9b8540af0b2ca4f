import { afterCommit } from '@atoll/database';
import type { DataSource, EntityManager, EntityMetadata } from 'typeorm';
import type { MachineDefinition, TransientRule } from './definition.js';
import type { Cause, MachineError, MachineRow } from './machine-row.js';

/** What a step found out. */
export type Outcome<Row, Event extends string> =
  /** The event happened. `reason` is kept as the last error. */
  | { event: Event; reason?: Omit<MachineError, 'at'> }
  /** What is to happen shows only under the lock: `decide` moves the row, or says false and it rests. */
  | { decide(manager: EntityManager, row: Row): Promise<boolean> }
  /** Nothing happened yet: look again then. No try is counted. */
  | { againAfterMs: number; reason?: Omit<MachineError, 'at'> }
  /** There is nothing to do here: for stable states that were looked at once. */
  | 'rest';

/** How a row came into its state. */
export interface Passage<State, Event> {
  readonly from: State;
  readonly event: Event;
  readonly cause: Cause;
}

export interface StepContext {
  /** Aborted when the step has taken too long, when its deadline passes, or at a shutdown. What it answers then is dropped. */
  readonly signal: AbortSignal;
}

/**
 * A definition made durable on one table: each row is an instance. A feature extends it with the steps of its transient states, which do work outside
 * of any transaction, and with what commits together with the entry into a state.
 */
export abstract class DurableMachine<Row extends MachineRow, State extends string = string, Event extends string = string> {
  private readonly metadata: EntityMetadata;
  /** In SQL: its table and the column of its key. */
  readonly table: string;
  readonly key: string;
  private ring: () => void = () => undefined;

  constructor(
    private readonly dataSource: DataSource,
    readonly definition: MachineDefinition<State, Event>,
    entity: new () => Row,
  ) {
    this.metadata = dataSource.getMetadata(entity);
    this.table = this.metadata.tableName;
    this.key = this.metadata.primaryColumns[0]?.databaseName ?? '';
  }

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
         INSERT INTO ${this.table} (${[...names, 'entered_at', 'deadline_at', 'due_at'].join(', ')})
         SELECT ${names.map((name) => `row.${name}`).join(', ')}, ${this.armed(initial, 'now')}
         FROM clock, given, json_populate_record(NULL::${this.table}, value) row ORDER BY place RETURNING *
       ), numbered AS (
         SELECT begun.*, row_number() OVER (ORDER BY ${this.key}) AS place FROM begun
       ), recorded AS (
         INSERT INTO machine_history (machine, instance, to_state, actor, reason, request_id, at)
         SELECT $1, ${this.key}, state, value->>'actor', value->>'reason', request_id, entered_at FROM numbered JOIN given USING (place) ORDER BY place
       )
       SELECT * FROM begun ORDER BY ${this.key}`,
      [this.definition.id, JSON.stringify(given)],
    );
    this.wakeAfter(manager);
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
             attempts = 0, claim_token = NULL, revision = revision + 1, request_id = coalesce($7, request_id),
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
    if (moved.length > 0) this.wakeAfter(manager);
    return moved;
  }

  /**
   * Has workers look at these rows now; one whose step is under way is looked at again after it. Rows that another transaction holds are left to the
   * look that was due anyway.
   */
  async touch(manager: EntityManager, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    await touchRows(manager, this.table, this.key, keys);
    this.wakeAfter(manager);
  }

  ruleOf(state: string): TransientRule | undefined {
    return this.definition.states.get(state as State)?.rule;
  }

  /** A row as it came from SQL, by the names of its columns, as an instance of its entity. */
  rowOf(raw: object): Row {
    const row = this.metadata.create() as Row;
    const columns = raw as Record<string, unknown>;
    for (const { propertyName, databaseName } of this.metadata.columns) Object.assign(row, { [propertyName]: columns[databaseName] });
    return row;
  }

  /** Names and values of what is given of a row, for SQL; a jsonb column is a text there, or with `json` what it holds. */
  columnsOf(values: object, form: 'sql' | 'json' = 'sql'): Map<string, unknown> {
    const given = values as Record<string, unknown>;
    return new Map(
      this.metadata.columns
        .filter(({ propertyName }) => given[propertyName] !== undefined)
        .map(({ propertyName, databaseName, type }) => {
          const value = given[propertyName];
          return [databaseName, form === 'sql' && type === 'jsonb' && value !== null ? JSON.stringify(value) : value];
        }),
    );
  }

  /** `ring` is called whenever something may be due. */
  onDue(ring: () => void): void {
    this.ring = ring;
  }

  /** For a step, which is outside of any transaction. */
  protected query<Result extends object>(sql: string, values: unknown[]): Promise<Result[]> {
    return this.dataSource.query<Result[]>(sql, values);
  }

  keyOf(row: Row): unknown {
    return this.columnsOf(row).get(this.key);
  }

  /** entered_at, deadline_at and due_at for a row that comes into the state at the instant `now`, an expression. */
  private armed(state: State, now: string): string {
    const rule = this.ruleOf(state);
    if (rule) return `${now}, ${now} + interval '${rule.deadlineMs} milliseconds', ${now}`;
    return `${now}, NULL::timestamptz, ${this.definition.states.get(state)?.isReviewed ? now : 'NULL::timestamptz'}`;
  }

  private wakeAfter(manager: EntityManager): void {
    afterCommit(manager, () => this.ring());
  }
}

/** Has workers look at these rows of a machine's table now; where only the table is known, and those in `states` alone where given. As `DurableMachine.touch`. */
export async function touchRows(
  manager: EntityManager,
  table: string,
  key: string,
  keys: readonly string[],
  states: readonly string[] | null = null,
): Promise<void> {
  await manager.query(
    // Never the instant that was due before: whoever is at it sees by that that there is something new.
    `UPDATE ${table} SET due_at = CASE WHEN due_at <= clock_timestamp() THEN GREATEST(clock_timestamp(), due_at + interval '1 millisecond') ELSE clock_timestamp() END
     WHERE ${key} IN (
       SELECT ${key} FROM ${table} WHERE ${key} = ANY ($1) AND ($2::text[] IS NULL OR state = ANY ($2)) FOR NO KEY UPDATE SKIP LOCKED
     )`,
    [keys, states],
  );
}
