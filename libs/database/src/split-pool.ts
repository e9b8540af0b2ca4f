import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { QueueTime } from './queue-time.js';

type Connect = (callback?: Given) => unknown;
type Given = (...args: unknown[]) => void;

const background = new AsyncLocalStorage<QueueTime>();

/**
 * Runs `work`, and all that it awaits or starts, on the connections that are set aside for background work
 * (`DatabaseOptions.backgroundPoolSize`): however much of it there is, requests find connections, and the other way
 * round. Where no connections are set aside, it uses the same pool as requests. `queued` measures how long it waits for them.
 */
export function inBackground<T>(work: () => T, queued = new QueueTime()): T {
  return background.run(queued, work);
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

  constructor({ background: overrides, ...config }: SplitPoolConfig) {
    super(config);
    this.second = overrides && new pg.Pool({ ...config, ...overrides });
    this.second?.on('error', (error, client) => this.emit('error', error, client));
  }

  /** pg declares two overloads. `query` takes its connection from here too. */
  override readonly connect = ((callback?: Given) => {
    const { second } = this;
    const queued = background.getStore();
    const connect = (second && queued ? second.connect.bind(second) : super.connect.bind(this)) as Connect;
    const end = queued?.begin();
    if (!callback) return (connect() as Promise<pg.PoolClient>).finally(end);
    return connect((...args) => {
      end?.();
      callback(...args);
    });
  }) as pg.Pool['connect'];

  override readonly end = ((callback?: () => void) => {
    const ended = Promise.all([super.end(), this.second?.end()]).then(() => undefined);
    return callback ? void ended.then(callback) : ended;
  }) as pg.Pool['end'];
}
