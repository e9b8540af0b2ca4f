import type { DataSource, QueryRunner } from 'typeorm';
import type { DomainEvent, TryAgain } from './courier.js';
import { HeldConnection } from './held-connection.js';
import { numberAndFetch } from './numbering.js';
import { keepPublished, renewPartitions } from './published-partitions.js';

/** The channel of NOTIFY and LISTEN, one for each schema. */
const channel = `'outbox.' || current_schema()`;

/** SQL for the key of the advisory lock of the one process of a service that relays. */
const relayLock = `hashtextextended('atoll relay ' || current_schema(), 0)`;

/** SQL for the key of the advisory lock that a process holds while it lives, given an expression for its id. */
export const processLock = (id: string) => `hashtextextended('atoll process ' || ${id}, 0)`;

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
 * The relay's two own connections to the database. What each holds ends with it, however it ends.
 *
 * - One holds a lock by which others see that this process lives, even while it is frozen.
 * - The other relays. While it holds the lock of the service, no other process relays, and it listens for commits of
 *   the others. PostgreSQL ends it when it has sent nothing for a while: a frozen process must not keep the others from
 *   relaying.
 */
export class RelaySession {
  readonly #runner: QueryRunner;
  #leadingSince: Date | undefined;

  private constructor(
    private readonly living: HeldConnection,
    private readonly relaying: HeldConnection,
  ) {
    this.#runner = relaying.runner;
  }

  /**
   * `maxSilenceMs`: PostgreSQL ends the connection that relays after so long without a statement. `onNotification` is
   * called when another process has committed events, and when a connection is lost.
   */
  static async open(
    dataSource: DataSource,
    { processId, maxSilenceMs }: { processId: string; maxSilenceMs: number },
    onNotification: () => void,
  ): Promise<RelaySession> {
    const living = await HeldConnection.open(dataSource, onNotification, (runner) =>
      runner.query(`SELECT pg_advisory_lock(${processLock('$1')})`, [processId]),
    );
    try {
      const relaying = await HeldConnection.open(dataSource, onNotification, (runner) =>
        runner.query(`SELECT set_config('idle_session_timeout', $1, false)`, [String(maxSilenceMs)]),
      );
      return new RelaySession(living, relaying);
    } catch (error) {
      await living.close();
      throw error;
    }
  }

  get isLeading(): boolean {
    return this.#leadingSince !== undefined;
  }

  /** Why a connection is lost; undefined while both stand. A statement that was to be sent on it says less. */
  get lost(): Error | undefined {
    return this.living.lost ?? this.relaying.lost;
  }

  /** A sign of life on both connections. Throws, with the reason, if one is lost. */
  async check(): Promise<void> {
    if (this.lost) throw this.lost;
    for (const { runner } of [this.living, this.relaying]) await runner.query('SELECT');
  }

  /** Tries to become the process that relays. Returns whether it is. */
  async lead(): Promise<boolean> {
    if (this.#leadingSince) return true;
    const [row] = await this.#runner.manager.query<{ held: boolean; at: Date; channel: string }[]>(
      `SELECT pg_try_advisory_lock(${relayLock}) AS held,
              clock_timestamp() AS at, quote_ident(${channel}) AS channel`,
    );
    if (!row?.held) return false;
    await this.#runner.query(`LISTEN ${row.channel}`);
    await this.renewPartitions();
    this.#leadingSince = row.at;
    return true;
  }

  /** Tells the process that relays, if there is one, that events have been committed. */
  async notify(): Promise<void> {
    await this.#runner.query(`SELECT pg_notify(${channel}, '')`);
  }

  /** Lets another process relay. */
  async resign(): Promise<void> {
    if (!this.#leadingSince) return;
    this.#leadingSince = undefined;
    await this.#runner.query('UNLISTEN *');
    await this.#runner.query(`SELECT pg_advisory_unlock(${relayLock})`);
  }

  /**
   * Makes room for what is published in the next days, and forgets what was published long ago. Only for the process
   * that relays.
   */
  async renewPartitions(): Promise<void> {
    await renewPartitions(this.#runner);
  }

  /**
   * The events that are due, in the order of their positions, but for those in hand. Those that have no position yet
   * get one, which only the process that relays may do. What was committed before this session began may have been
   * delivered by the one before it, so it does not count as a first attempt.
   */
  async fetch(limit: number, inHand: readonly string[]): Promise<Waiting[]> {
    const rows = await this.#runner.manager.query<Row[]>(numberAndFetch, [limit, inHand, this.#leadingSince]);
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
    await this.#runner.query(keepPublished, [ids]);
  }

  async postpone(events: readonly (TryAgain & { id: string })[]): Promise<void> {
    await this.#runner.query(
      `UPDATE outbox SET attempts = attempts + 1, next_attempt_at = now() + later.ms * interval '1 millisecond', last_error = later.reason
       FROM unnest($1::uuid[], $2::float8[], $3::text[]) AS later (id, ms, reason) WHERE outbox.id = later.id`,
      [events.map(({ id }) => id), events.map(({ retryAfterMs }) => retryAfterMs), events.map(({ reason }) => reason)],
    );
  }

  /** Ends the connections, and with them the locks. */
  async close(): Promise<void> {
    await Promise.all([this.living.close(), this.relaying.close()]);
  }
}
