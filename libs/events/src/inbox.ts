import { newId, toAppError, type Transactions } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { backOffMs, type BackOff } from './back-off.js';
import type { DomainEvent, Outcome } from './courier.js';
import { describeError } from './error-description.js';
import type { Effect } from './event-consumers.js';
import { InvalidPayload, readPayload } from './event-payload.js';
import { deliveryOf } from './on-event.js';

export interface RetryRules extends BackOff {
  /** Tries of one effect before the event is put among the dead letters. */
  readonly maxTries: number;
}

export const defaultRetryRules: RetryRules = { maxTries: 5, firstDelayMs: 500, maxDelayMs: 60_000, factor: 4 };

/** What is not the event's fault: as long as it lasts, no try is counted. */
const outage: BackOff = { firstDelayMs: 100, maxDelayMs: 15_000 };

const pruneBatch = 5_000;
const mostOwed = 10_000;

/** Takes each event once for each consumer, whatever the courier delivers. */
export class Inbox {
  readonly #logger = new Logger('Events');
  /** Tries that an outage cut short and that could not be taken back while it lasted, by consumer and event. */
  readonly #owed = new Map<string, number>();

  constructor(
    private readonly transactions: Transactions,
    private readonly dataSource: DataSource,
    private readonly rules: RetryRules,
  ) {}

  /** One delivery, as `EventConsumer.take`: never throws. */
  async take(consumer: string, effect: Effect, event: DomainEvent, attempt: number): Promise<Outcome> {
    let tries = 0;
    try {
      // Of a try that ended the process nobody tells but this count, so it is made before the next one begins.
      if (attempt > 1) {
        const begun = await this.countTry(consumer, event);
        if (begun === 'taken') return 'done';
        if (begun > this.rules.maxTries) return await this.bury(consumer, event, 'The process ended during each try.', begun - 1);
        tries = begun;
      }
      const payload = readPayload(effect.type.payload, event.payload);
      await this.transactions.run(async (manager) => {
        if (await this.mark(manager, consumer, event.id)) await effect.run(payload, deliveryOf(event, manager));
      });
      return 'done';
    } catch (error) {
      return await this.failed(consumer, event, error, attempt, tries);
    }
  }

  /** Forgets what was taken before the given instant. Returns how many events. */
  async prune(before: Date): Promise<number> {
    for (let pruned = 0; ;) {
      const [, count] = await this.dataSource.query<[unknown, number]>(
        'DELETE FROM inbox WHERE ctid IN (SELECT ctid FROM inbox WHERE received_at < $1 LIMIT $2)',
        [before, pruneBatch],
      );
      pruned += count;
      if (count < pruneBatch) return pruned;
    }
  }

  /** True if the event is this transaction's to take; false if another has taken it. Waits while another is at it. */
  private async mark(manager: EntityManager, consumer: string, eventId: string): Promise<boolean> {
    const rows = await manager.query<object[]>(
      `INSERT INTO inbox (consumer, event_id, taken_at) VALUES ($1, $2, now())
       ON CONFLICT (consumer, event_id) DO UPDATE SET taken_at = now() WHERE inbox.taken_at IS NULL
       RETURNING true`,
      [consumer, eventId],
    );
    return rows.length > 0;
  }

  /** How many tries were made or begun, this one included; `taken` if none is needed. */
  private async countTry(consumer: string, event: DomainEvent): Promise<number | 'taken'> {
    const owed = this.#owed.get(`${consumer} ${event.id}`) ?? 0;
    const [row] = await this.dataSource.query<{ tries: number }[]>(
      `INSERT INTO inbox (consumer, event_id, tries) VALUES ($1, $2, 1)
       ON CONFLICT (consumer, event_id) DO UPDATE SET tries = GREATEST(0, inbox.tries - $3) + 1 WHERE inbox.taken_at IS NULL
       RETURNING tries`,
      [consumer, event.id, owed],
    );
    this.#owed.delete(`${consumer} ${event.id}`);
    return row ? row.tries : 'taken';
  }

  private async failed(consumer: string, event: DomainEvent, error: unknown, attempt: number, counted: number): Promise<Outcome> {
    const reason = describeError(error);
    try {
      if (isOutage(error)) {
        if (counted > 0) await this.uncountTry(consumer, event.id);
        return { retryAfterMs: backOffMs(outage, attempt), reason };
      }
      const tries = counted || (await this.countTry(consumer, event));
      if (tries === 'taken') return 'done';
      if (error instanceof InvalidPayload || tries >= this.rules.maxTries) return await this.bury(consumer, event, reason, tries);
      this.#logger.warn(`${consumer}: ${event.name} ${event.id} failed at try ${tries}: ${reason}`);
      return { retryAfterMs: backOffMs(this.rules, tries), reason };
    } catch (databaseError) {
      return { retryAfterMs: backOffMs(outage, attempt), reason: describeError(databaseError) };
    }
  }

  /** The database may be what is away: then the try is taken back with the next one. */
  private async uncountTry(consumer: string, eventId: string): Promise<void> {
    try {
      await this.dataSource.query('UPDATE inbox SET tries = tries - 1 WHERE consumer = $1 AND event_id = $2 AND tries > 0', [
        consumer,
        eventId,
      ]);
    } catch (error) {
      const key = `${consumer} ${eventId}`;
      // Those of which another replica took the next try are not asked for again.
      if (this.#owed.size >= mostOwed) this.#owed.clear();
      this.#owed.set(key, (this.#owed.get(key) ?? 0) + 1);
      throw error;
    }
  }

  /** Puts the event among the dead letters and is done with it. */
  private async bury(consumer: string, event: DomainEvent, reason: string, tries: number): Promise<Outcome> {
    const buried = await this.transactions.run(async (manager) => {
      if (!(await this.mark(manager, consumer, event.id))) return false;
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
    if (buried) this.#logger.error(`${consumer}: ${event.name} ${event.id} is a dead letter after ${tries} tries: ${reason}`);
    return 'done';
  }
}

function isOutage(error: unknown): boolean {
  const known = toAppError(error);
  return isAppError(known) && known.code === 'unavailable';
}
