import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { ConnectionTurns, type Given } from './connection-turns.js';
import { markRefusal } from './database-errors.js';
import { QueueTime } from './queue-time.js';

type Connect = (callback: Given) => void;

const background = new AsyncLocalStorage<QueueTime>();

/**
 * Runs `work`, and all that it awaits or starts, on the connections that are set aside for background work
 * (`DatabaseOptions.backgroundPoolSize`): however much of it there is, requests find connections, and the other way
 * round. Where no connections are set aside, it uses the same pool as requests. `queued` measures how long it waits for
 * them, and says whose turn it has.
 */
export function inBackground<T>(work: () => T, queued = new QueueTime()): T {
  return background.run(queued, work);
}

/** Milliseconds for which the work of `inBackground` that calls this has waited for connections; 0 for other work. */
export function queuedMs(): number {
  return background.getStore()?.ms ?? 0;
}

export interface SplitPoolConfig extends pg.PoolConfig {
  /** Overrides for the connections of background work. Omitted: background work has no connections of its own. */
  background?: pg.PoolConfig;
}

/**
 * A pg pool with a second one beneath it: the caller's async context (`inBackground`) decides which one it draws from.
 */
export class SplitPool extends pg.Pool {
  private readonly second: pg.Pool | undefined;
  private readonly turns: ConnectionTurns | undefined;

  constructor({ background: overrides, ...config }: SplitPoolConfig) {
    super(config);
    this.second = overrides && new pg.Pool({ ...config, ...overrides });
    this.turns = this.second && new ConnectionTurns(this.second, this.second.options.connectionTimeoutMillis ?? 0);
    this.second?.on('error', (error, client) => this.emit('error', error, client));
    for (const change of ['connect', 'remove'] as const)
      this.second?.on(change, (client: pg.PoolClient) => this.emit(change, client));
  }

  /** pg declares two overloads. `query` takes its connection from here too. */
  override readonly connect = ((callback?: Given) => {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((error, client) =>
          client ? resolve(client) : reject(error ?? new Error('No connection was given.')),
        );
      });
    }
    const { turns } = this;
    const queued = background.getStore();
    const end = queued?.begin();
    const given: Given = (error, client, release) => {
      end?.();
      if (error) markRefusal(error);
      if (!client || !this.ending) return callback(error, client, release);
      // It comes after the end of the pool, which waits for it. Who asked may be gone, and never give it back.
      release(true);
      callback(new Error('Cannot use a pool after calling end on the pool'), undefined, () => undefined);
    };
    if (turns && queued) turns.take(queued.owner ?? queued, given);
    else (super.connect.bind(this) as Connect)(given);
    return undefined;
  }) as pg.Pool['connect'];

  override readonly end = ((callback?: () => void) => {
    const ended = Promise.all([super.end(), this.second?.end()]).then(() => undefined);
    return callback ? void ended.then(callback) : ended;
  }) as pg.Pool['end'];
}
