import { isOutage, isStatementTimeout, newId, type Transactions } from '@atoll/database';
import { backOffMs, ThrottledLog, type BackOff } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import type { DomainEvent, Outcome } from './courier.js';
import { describeError } from './error-description.js';
import type { Effect } from './event-consumers.js';
import { InvalidPayload, readPayload } from './event-payload.js';
import { deliveryOf } from './on-event.js';
import { inboxColumns, inboxParameters, inboxValues } from './inbox-row.js';
import { limitLockWaits, tookTooLong } from './long-effects.js';
import { retentionDays } from './published-partitions.js';
import { Tries } from './tries.js';

export interface RetryRules extends BackOff {
  /** Tries of one effect before the event becomes a dead letter. */
  readonly maxTries: number;
  /**
   * How long a process must have been without its session in the database before the tries that it ran count as failed.
   */
  readonly goneAfterMs: number;
  /** Waits after tries that counted because the database was well and the effect took longer than it allows. */
  readonly timedOut: BackOff;
  /** How long an event that is the only one of its consumer to time out is waited for before such tries count. */
  readonly aloneForMs: number;
}

export const defaultRetryRules: RetryRules = {
  maxTries: 5,
  firstMs: 500,
  maxMs: 60_000,
  factor: 4,
  jitter: 1 / 5,
  goneAfterMs: 5_000,
  // Five tries in a quarter of an hour.
  timedOut: { firstMs: 60_000, maxMs: 600_000, jitter: 1 / 5 },
  aloneForMs: 3_600_000,
};

/** For failures that are not the event's fault: they count as no try, as long as they last. */
const outage: BackOff = { firstMs: 100, maxMs: 15_000 };

const pruneBatch = 5_000;
const retentionWithoutPositionDays = 30;

/**
 * SQL, with `inboxParameters` and the event's instant `$7`: whether it is a copy of an event that was handled so long
 * ago that its row has been removed. Uses the clock of the database, which also removes rows. Events that were given up
 * as lost were not handled.
 */
const isForgotten = `$7::timestamptz < now() - ${retentionDays - 1} * interval '1 day'
  AND EXISTS (SELECT FROM event_progress WHERE consumer = $1 AND publisher = $3 AND event_name = $4 AND position >= $5)
  AND NOT EXISTS (SELECT FROM inbox WHERE inbox.consumer = $1 AND event_id = $2)
  AND NOT EXISTS (SELECT FROM event_gap WHERE consumer = $1 AND publisher = $3 AND event_name = $4 AND after < $5 AND up_to >= $5)`;

/** Takes each event once for each consumer, however often the courier delivers it. */
export class Inbox {
  readonly #logger = new Logger('Events');
  readonly #slow = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #tries: Tries;

  /** `processId`: of the process whose session the relay keeps. */
  constructor(
    private readonly transactions: Transactions,
    private readonly dataSource: DataSource,
    private readonly rules: RetryRules,
    processId: string,
  ) {
    this.#tries = new Tries(transactions, dataSource, processId, rules.goneAfterMs);
  }

  /** One delivery, as `EventConsumer.take`: never throws. */
  async take(consumer: string, effect: Effect, event: DomainEvent, attempt: number): Promise<Outcome> {
    try {
      // A try that ends its process can report nothing. So it is recorded before, but for the first one, to save a
      // write.
      if (attempt > 1) {
        if (await this.isForgotten(consumer, event)) return 'done';
        const failed = await this.#tries.begin(consumer, event);
        if (failed === 'taken') return 'done';
        if (failed === 'undecided')
          return { retryAfterMs: this.rules.goneAfterMs, reason: 'The process of the last try may have ended.' };
        if (failed >= this.rules.maxTries)
          return await this.deadLetter(consumer, event, 'The process ended during each try.', failed);
      }
      const payload = readPayload(effect.type.payload, event.payload);
      await this.transactions.run(async (manager) => {
        if (attempt > 1) await limitLockWaits(manager);
        if (await this.mark(manager, consumer, event)) await effect.run(payload, deliveryOf(event, manager));
      });
      return 'done';
    } catch (error) {
      return await this.failed(consumer, event, error, attempt);
    }
  }

  /**
   * Forgets what was received long ago and can be told from a new event without its row: by its position, at or before
   * which the consumer has everything. Without a position an event is known for 30 days. Returns the number of rows.
   */
  async prune(): Promise<number> {
    for (let pruned = 0; ;) {
      const [, count] = await this.dataSource.query<[unknown, number]>(
        `DELETE FROM inbox WHERE ctid IN (
           SELECT inbox.ctid FROM inbox LEFT JOIN event_progress progress USING (consumer, publisher, event_name)
           WHERE received_at < now() - $1 * interval '1 day' AND (inbox.position <= progress.position
             OR inbox.position IS NULL AND received_at < now() - $2 * interval '1 day') LIMIT $3)`,
        [retentionDays, retentionWithoutPositionDays, pruneBatch],
      );
      pruned += count;
      if (count < pruneBatch) return pruned;
    }
  }

  /** For a try that would leave a row before it takes the event. */
  private async isForgotten(consumer: string, event: DomainEvent): Promise<boolean> {
    const [row] = await this.dataSource.query<{ is_forgotten: boolean | null }[]>(
      `SELECT ${isForgotten} AS is_forgotten FROM (SELECT ${inboxParameters}) given`,
      [...inboxValues(consumer, event), event.occurredAt],
    );
    return row?.is_forgotten === true;
  }

  /**
   * Returns whether this transaction takes the event; false if another has taken it, or did so long ago. Waits for one
   * that is taking it.
   */
  private async mark(manager: EntityManager, consumer: string, event: DomainEvent): Promise<boolean> {
    const rows = await manager.query<object[]>(
      `INSERT INTO inbox (${inboxColumns}, taken_at) SELECT ${inboxParameters}, now() WHERE (${isForgotten}) IS NOT TRUE
       ON CONFLICT (consumer, event_id) DO UPDATE SET taken_at = now() WHERE inbox.taken_at IS NULL
       RETURNING true`,
      [...inboxValues(consumer, event), event.occurredAt],
    );
    return rows.length > 0;
  }

  private async failed(consumer: string, event: DomainEvent, error: unknown, attempt: number): Promise<Outcome> {
    const reason = describeError(error);
    try {
      if (isStatementTimeout(error)) return await this.timedOut(consumer, event, attempt);
      if (isOutage(error)) {
        await this.#tries.interrupted(consumer, event.id);
        return { retryAfterMs: backOffMs(outage, attempt), reason };
      }
      if (attempt === 1 && (await this.isForgotten(consumer, event))) return 'done';
      const tries = await this.#tries.failed(consumer, event);
      if (tries === 'taken') return 'done';
      if (error instanceof InvalidPayload || tries >= this.rules.maxTries)
        return await this.deadLetter(consumer, event, reason, tries);
      this.#logger.warn(`${consumer}: ${event.name} ${event.id} failed at try ${tries}: ${reason}`);
      return { retryAfterMs: backOffMs(this.rules, tries), reason };
    } catch (databaseError) {
      return { retryAfterMs: backOffMs(outage, attempt), reason: describeError(databaseError) };
    }
  }

  /** Either the database is slow, or this event alone takes too long. */
  private async timedOut(consumer: string, event: DomainEvent, attempt: number): Promise<Outcome> {
    if (attempt === 1 && (await this.isForgotten(consumer, event))) return 'done';
    const { aloneForMs, maxTries, timedOut } = this.rules;
    const found = await this.#tries.timedOut(consumer, event, { mayCount: attempt > 1, aloneForMs });
    if (found === 'taken') return 'done';
    const { counts, tries } = found;
    if (counts && tries >= maxTries) return this.deadLetter(consumer, event, tookTooLong, tries);
    if (counts) this.#logger.warn(`${consumer}: ${event.name} ${event.id} failed at try ${tries}: ${tookTooLong}`);
    else
      this.#slow.log(consumer, { message: `${consumer}: ${event.name} ${event.id} will be retried: ${tookTooLong}` });
    return { retryAfterMs: counts ? backOffMs(timedOut, tries) : backOffMs(this.rules, attempt), reason: tookTooLong };
  }

  /** Moves the event to the dead letters. */
  private async deadLetter(consumer: string, event: DomainEvent, reason: string, tries: number): Promise<Outcome> {
    const isNew = await this.transactions.run(async (manager) => {
      if (!(await this.mark(manager, consumer, event))) return false;
      await manager.query(
        `INSERT INTO dead_letter (id, consumer, event_id, event_name, payload, occurred_at, request_id, traceparent, last_error, tries, first_failed_at, last_failed_at)
         SELECT $1, consumer, event_id, $4, $5, $6, $7, $8, $9, $10, received_at, now() FROM inbox WHERE consumer = $2 AND event_id = $3
         ON CONFLICT (consumer, event_id) DO NOTHING`,
        [
          newId(),
          consumer,
          event.id,
          event.name,
          JSON.stringify(event.payload),
          event.occurredAt,
          event.requestId ?? null,
          event.traceparent ?? null,
          reason,
          tries,
        ],
      );
      return true;
    });
    if (isNew)
      this.#logger.error(`${consumer}: ${event.name} ${event.id} is a dead letter after ${tries} tries: ${reason}`);
    return 'done';
  }
}
