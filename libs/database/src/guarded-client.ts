import type { Socket } from 'node:net';
import pg from 'pg';
import { isConnectionLost } from './database-errors.js';

type Callback = (error: Error | null | undefined, ...rest: unknown[]) => void;

/**
 * A pg client that is never returned to its pool in an unknown state. When its own `query_timeout` fires, or the server says
 * that this connection is of no use any more, it destroys its socket, and the pool throws it away. Without this, pg hands out
 * a client on which the answer of somebody else's query is still to come.
 */
export class GuardedClient extends pg.Client {
  /** Why the connection is gone, once it is. */
  lost?: Error;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // An EventEmitter without a listener for `error` ends the process; pools and query runners listen only part of the time.
    this.on('error', (error: Error) => {
      this.lost ??= error;
    });
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
    const result = query(config, ...rest);
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
