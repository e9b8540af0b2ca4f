import type { Socket } from 'node:net';
import pg from 'pg';
import { isConnectionLost, isOutdated } from './database-errors.js';
import { prepareAnew, StatementNames } from './statement-names.js';

type Callback = (error: Error | null | undefined, ...rest: unknown[]) => void;

/** A statement that goes with the start of a transaction. */
interface Companion {
  statement: string;
  rowCount?: number;
}

/** How long one connection uses the plans of its prepared statements. */
const plansLastMs = 5_000;

/**
 * A pg client that is never returned to its pool in an unknown state. When its own `query_timeout` fires, or the server
 * says that this connection is of no use any more, it destroys its socket, and the pool throws it away. Without this,
 * pg hands out a client on which the answer of somebody else's query is still to come.
 */
export class GuardedClient extends pg.Client {
  /** Why the connection is gone, once it is. */
  lost?: Error;
  #companion: Companion | undefined;
  #isInTransaction = false;
  #preparesAlways = false;
  #plannedAtMs = performance.now();
  readonly #names = new StatementNames();

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // An EventEmitter without a listener for `error` ends the process; pools and query runners listen only part of the
    // time.
    this.on('error', (error: Error) => {
      this.lost ??= error;
    });
  }

  /**
   * Sends a statement together with the START TRANSACTION that `start` issues, in one round trip, since a transaction
   * of one insert would otherwise pay a third of its time for it. The statement has no parameters. Returns how many
   * rows it affected.
   */
  async startTogetherWith(statement: string, start: () => Promise<void>): Promise<number> {
    const companion: Companion = (this.#companion = { statement });
    try {
      await start();
    } finally {
      this.#companion = undefined;
    }
    if (companion.rowCount === undefined)
      throw new Error('The statement was not sent, since no START TRANSACTION was.');
    return companion.rowCount;
  }

  /**
   * From now on statements outside of transactions are prepared too: for a connection that sends the same few all the
   * time, whose sender tries again after an error.
   */
  prepareAlways(): this {
    this.#preparesAlways = true;
    return this;
  }

  /** Ends the connection at once, whatever the server does. Pools drop a client that has been destroyed. */
  destroy(reason: Error): void {
    this.lost ??= reason;
    void this.end();
    (this as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
  }

  /** pg declares a dozen overloads; all of them come through here. */
  override readonly query = ((config: unknown, ...rest: unknown[]) => this.guard(config, rest)) as pg.Client['query'];

  private guard(config: unknown, rest: unknown[]): unknown {
    const query = super.query.bind(this) as (...parameters: unknown[]) => unknown;
    const callback = rest.at(-1);
    if (typeof callback === 'function') {
      return query(config, ...rest.slice(0, -1), (error: Error | null | undefined, ...results: unknown[]) => {
        if (error) this.inspect(error);
        (callback as Callback)(error, ...results);
      });
    }
    const companion = config === 'START TRANSACTION' ? this.#companion : undefined;
    if (companion) this.#isInTransaction = true;
    const result = companion ? this.startWith(companion, query) : this.send(query, this.prepared(config, rest));
    // A cursor or a stream handles its own errors.
    if (!(result instanceof Promise)) return result;
    return result.then(
      (answer: pg.QueryResult) => (config === 'COMMIT' ? committed(answer) : answer),
      (error: Error) => {
        this.inspect(error);
        throw error;
      },
    );
  }

  /**
   * Statements of transactions are prepared. Those outside are not, but for those that say so (`Statements`): many are
   * listings, whose best plan depends on their values; and nobody runs them again when their plan is out of date.
   */
  private prepared(config: unknown, rest: unknown[]): unknown[] {
    if (typeof config !== 'string') return [config, ...rest];
    if (config === 'START TRANSACTION') this.#isInTransaction = true;
    else if (config === 'COMMIT' || config === 'ROLLBACK') this.#isInTransaction = false;
    const [values] = rest;
    const isPrepared = (this.#isInTransaction || this.#preparesAlways) && Array.isArray(values) && values.length > 0;
    const name = isPrepared ? this.#names.nameOf(config) : undefined;
    return name === undefined ? [config, ...rest] : [{ name, text: config, values: values as unknown[] }];
  }

  /**
   * Sends a statement, and before a prepared one every five seconds `DISCARD PLANS`. PostgreSQL keeps a plan until the
   * table is analysed again, which autovacuum does once a minute: a table that fills meanwhile would be read from end
   * to end.
   */
  private send(query: (...parameters: unknown[]) => unknown, statement: unknown[]): unknown {
    const nowMs = performance.now();
    const isPrepared = statement.length === 1 && (statement[0] as { name?: string }).name !== undefined;
    if (!isPrepared || nowMs < this.#plannedAtMs + plansLastMs) return query(...statement);
    this.#plannedAtMs = nowMs;
    const renewed = query('DISCARD PLANS') as Promise<unknown>;
    // In a transaction that has failed both are refused, and the statement says so.
    return renewed.catch((error: Error) => this.inspect(error)).then(() => query(...statement));
  }

  private async startWith(companion: Companion, query: (text: string) => unknown): Promise<unknown> {
    // pg gives one result for each statement of a text.
    const [started, answer] = (await query(`START TRANSACTION; ${companion.statement}`)) as [
      pg.QueryResult,
      pg.QueryResult,
    ];
    companion.rowCount = answer.rowCount ?? 0;
    return started;
  }

  private inspect(error: Error): void {
    if (isConnectionLost(error)) this.destroy(error);
    else if (isOutdated(error)) prepareAnew();
  }
}

/** PostgreSQL answers COMMIT with ROLLBACK, and no error, when a statement of the transaction has failed. */
function committed(answer: pg.QueryResult): pg.QueryResult {
  if (answer.command === 'ROLLBACK') {
    throw new Error('Nothing was committed: a statement of this transaction failed and its error was swallowed.');
  }
  return answer;
}
