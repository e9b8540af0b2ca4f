import type { Socket } from 'node:net';
import pg from 'pg';
import { isConnectionLost } from './database-errors.js';

type Callback = (error: Error | null | undefined, ...rest: unknown[]) => void;

/** A statement that goes with the start of a transaction. */
interface Companion {
  statement: string;
  rowCount?: number;
}

/**
 * A pg client that is never returned to its pool in an unknown state. When its own `query_timeout` fires, or the server says
 * that this connection is of no use any more, it destroys its socket, and the pool throws it away. Without this, pg hands out
 * a client on which the answer of somebody else's query is still to come.
 */
export class GuardedClient extends pg.Client {
  /** Why the connection is gone, once it is. */
  lost?: Error;
  #companion: Companion | undefined;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // An EventEmitter without a listener for `error` ends the process; pools and query runners listen only part of the time.
    this.on('error', (error: Error) => {
      this.lost ??= error;
    });
  }

  /**
   * Sends a statement together with the START TRANSACTION that `start` issues, in one round trip, since a transaction of one insert would
   * otherwise pay a third of its time for it. The statement has no parameters. Returns how many rows it affected.
   */
  async startTogetherWith(statement: string, start: () => Promise<void>): Promise<number> {
    const companion: Companion = (this.#companion = { statement });
    try {
      await start();
    } finally {
      this.#companion = undefined;
    }
    if (companion.rowCount === undefined) throw new Error('The statement was not sent, since no START TRANSACTION was.');
    return companion.rowCount;
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
    const result = companion ? this.startWith(companion, query) : query(config, ...rest);
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

  private async startWith(companion: Companion, query: (text: string) => unknown): Promise<unknown> {
    // pg gives one result for each statement of a text.
    const [started, answer] = (await query(`START TRANSACTION; ${companion.statement}`)) as [pg.QueryResult, pg.QueryResult];
    companion.rowCount = answer.rowCount ?? 0;
    return started;
  }

  private inspect(error: Error): void {
    if (isConnectionLost(error)) this.destroy(error);
  }
}

/** PostgreSQL answers COMMIT with ROLLBACK, and no error, when a statement of the transaction has failed. */
function committed(answer: pg.QueryResult): pg.QueryResult {
  if (answer.command === 'ROLLBACK') {
    throw new Error('Nothing was committed: a statement of this transaction failed and its error was swallowed.');
  }
  return answer;
}
