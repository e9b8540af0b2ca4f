import type { DataSource, QueryRunner } from 'typeorm';
import type { DomainEvent, TryAgain } from './courier.js';
import { numberAndFetch } from './numbering.js';
import { keepPublished, renewPartitions } from './published-partitions.js';

/** The channel of NOTIFY and LISTEN, one for each schema. */
const channel = `'outbox.' || current_schema()`;

/** SQL for the key of the advisory lock of the one process of a service that relays. */
const relayLock = `hashtextextended('atoll relay ' || current_schema(), 0)`;

/** SQL for the key of the advisory lock that a process holds while it lives, given an expression for its id. */
export const processLock = (id: string) => `hashtextextended('atoll process ' || ${id}, 0)`;

/** The features of a libs/database connection that the relay needs in addition to queries. */
interface Connection {
  on(event: 'notification' | 'end', listener: () => void): this;
  off(event: 'notification' | 'end', listener: () => void): this;
  destroy(reason: Error): void;
  prepareAlways(): this;
}

export interface Waiting {
  readonly event: DomainEvent;
  readonly attempt: number;
}

interface Row {
  id: string;
  name: string;
  payload: unknown;
  requestId: string | null;
  traceparent: string | null;
  occurredAt: Date;
  position: number;
  previous: number;
  attempt: number;
}

/**
 * The relay's own connection to the database. It holds an advisory lock by which others see that this process lives.
 * While it holds that of the service too, no other process relays, and it listens for commits of the others. All of it
 * ends with the connection, however that ends.
 */
export class RelaySession {
  #leadingSince: Date | undefined;

  private constructor(
    private readonly runner: QueryRunner,
    private readonly connection: Connection,
    private readonly onNotification: () => void,
  ) {}

  /** `onNotification` is called when another process has committed events, and when the connection is lost. */
  static async open(dataSource: DataSource, processId: string, onNotification: () => void): Promise<RelaySession> {
    const runner = dataSource.createQueryRunner();
    const connection = (await runner.connect()) as Connection;
    connection.prepareAlways().on('notification', onNotification).on('end', onNotification);
    const session = new RelaySession(runner, connection, onNotification);
    try {
      await runner.query(`SELECT pg_advisory_lock(${processLock('$1')})`, [processId]);
    } catch (error) {
      await session.close();
      throw error;
    }
    return session;
  }

  get isLeading(): boolean {
    return this.#leadingSince !== undefined;
  }

  /** Tries to become the process that relays. Returns whether it is. */
  async lead(): Promise<boolean> {
    if (this.#leadingSince) return true;
    const [row] = await this.runner.manager.query<{ held: boolean; at: Date; channel: string }[]>(
      `SELECT pg_try_advisory_lock(${relayLock}) AS held,
              clock_timestamp() AS at, quote_ident(${channel}) AS channel`,
    );
    if (!row?.held) return false;
    await this.runner.query(`LISTEN ${row.channel}`);
    await this.renewPartitions();
    this.#leadingSince = row.at;
    return true;
  }

  /** Tells the process that relays, if there is one, that events have been committed. */
  async notify(): Promise<void> {
    await this.runner.query(`SELECT pg_notify(${channel}, '')`);
  }

  /** Lets another process relay. */
  async resign(): Promise<void> {
    if (!this.#leadingSince) return;
    this.#leadingSince = undefined;
    await this.runner.query('UNLISTEN *');
    await this.runner.query(`SELECT pg_advisory_unlock(${relayLock})`);
  }

  /**
   * Makes room for what is published in the next days, and forgets what was published long ago. Only for the process
   * that relays.
   */
  async renewPartitions(): Promise<void> {
    await renewPartitions(this.runner);
  }

  /**
   * The events that are due, in the order of their positions, but for those in hand. Those that have no position yet
   * get one, which only the process that relays may do. What was committed before this session began may have been
   * delivered by the one before it, so it does not count as a first attempt.
   */
  async fetch(limit: number, inHand: readonly string[]): Promise<Waiting[]> {
    const rows = await this.runner.manager.query<Row[]>(numberAndFetch, [limit, inHand, this.#leadingSince]);
    return rows.map(({ attempt, requestId, traceparent, occurredAt, ...event }) => ({
      attempt,
      event: {
        ...event,
        occurredAt: occurredAt.toISOString(),
        ...(requestId !== null && { requestId }),
        ...(traceparent !== null && { traceparent }),
      },
    }));
  }

  /** Takes events that the courier is done with out of the outbox, and keeps them for those who may have lost them. */
  async keep(ids: readonly string[]): Promise<void> {
    await this.runner.query(keepPublished, [ids]);
  }

  async postpone(events: readonly (TryAgain & { id: string })[]): Promise<void> {
    await this.runner.query(
      `UPDATE outbox SET attempts = attempts + 1, next_attempt_at = now() + later.ms * interval '1 millisecond', last_error = later.reason
       FROM unnest($1::uuid[], $2::float8[], $3::text[]) AS later (id, ms, reason) WHERE outbox.id = later.id`,
      [events.map(({ id }) => id), events.map(({ retryAfterMs }) => retryAfterMs), events.map(({ reason }) => reason)],
    );
  }

  /** Ends the connection, and with it the lock. */
  async close(): Promise<void> {
    this.connection.off('notification', this.onNotification).off('end', this.onNotification);
    this.connection.destroy(new Error('The relay has ended its session.'));
    await this.runner.release();
  }
}
