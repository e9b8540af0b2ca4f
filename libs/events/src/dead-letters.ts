import { isOutage, isStatementTimeout, Transactions } from '@atoll/database';
import { AppError, isAppError } from '@atoll/errors';
import { WakeUp } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DeadLetter } from './dead-letter.entity.js';
import { describeError } from './error-description.js';
import { EventConsumers, type Effect } from './event-consumers.js';
import { readPayload } from './event-payload.js';
import { limitLockWaits, tookTooLong } from './long-effects.js';
import { deliveryOf } from './on-event.js';

const listLimit = 100;

/** The events that this service could not take. */
@Injectable()
export class DeadLetters {
  /** Rings when an operator has asked this process for another try. */
  readonly retryAsked = new WakeUp();

  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly consumers: EventConsumers,
  ) {}

  /** The latest first, 100 unless told otherwise. */
  async list(limit = listLimit): Promise<DeadLetter[]> {
    return this.dataSource.getRepository(DeadLetter).find({ order: { lastFailedAt: 'DESC', id: 'DESC' }, take: limit });
  }

  async count(): Promise<number> {
    return this.dataSource.getRepository(DeadLetter).count();
  }

  /**
   * Tries those once more for which an operator asked, the first of them first, until `signal`. What becomes of each
   * stands in its row. Resolves with whether there may be more.
   */
  async retryRequested(signal?: AbortSignal): Promise<boolean> {
    const rows = await this.dataSource.query<{ id: string }[]>(
      `SELECT id FROM dead_letter WHERE retry_requested_at IS NOT NULL ORDER BY retry_requested_at LIMIT ${listLimit}`,
    );
    let handled = 0;
    for (const { id } of rows) {
      if (signal?.aborted) return false;
      try {
        await this.retry(id);
      } catch (error) {
        if (!isAppError(error)) throw error;
        // Another replica was faster, or it failed again, as its row says. What something else keeps from its effect
        // waits behind the others.
        if (error.code === 'unavailable') {
          await this.askAgainLater(id);
          continue;
        }
      }
      handled += 1;
    }
    return rows.length === listLimit && handled > 0;
  }

  /**
   * Tries a dead letter once more, here and now: the effect and the end of the letter are one transaction. Throws
   * AppError `not_found` for an unknown id, and `conflict` when it failed again or nobody takes such events any more;
   * then the letter stays.
   */
  async retry(id: string): Promise<void> {
    let known = false;
    try {
      await this.transactions.run(async (manager) => {
        await limitLockWaits(manager);
        // Whoever retries at the same time waits here, and then finds nothing.
        const letter = await manager.findOne(DeadLetter, { where: { id }, lock: { mode: 'pessimistic_write' } });
        known = letter !== null;
        if (!letter) return;
        const effect = this.effectOf(letter);
        const payload = readPayload(effect.type.payload, letter.payload);
        await manager.delete(DeadLetter, { id });
        await effect.run(payload, deliveryOf({ ...letter, id: letter.eventId }, manager));
      });
    } catch (error) {
      const isTooSlow = isStatementTimeout(error);
      if (isOutage(error) && !isTooSlow) throw error;
      throw await this.failedAgain(id, isTooSlow ? tookTooLong : describeError(error), error);
    }
    if (!known) throw new AppError('not_found', 'No such dead letter.');
  }

  /** Throws where it is the database that is away. */
  private async askAgainLater(id: string): Promise<void> {
    await this.dataSource.query(
      'UPDATE dead_letter SET retry_requested_at = now() WHERE id = $1 AND retry_requested_at IS NOT NULL',
      [id],
    );
  }

  private effectOf({ consumer, eventName }: DeadLetter): Effect {
    const effect = this.consumers.all().get(consumer)?.get(eventName);
    if (!effect) throw new AppError('conflict', `No consumer ${consumer} handles ${eventName} any more.`);
    return effect;
  }

  private async failedAgain(id: string, reason: string, cause: unknown): Promise<AppError> {
    await this.dataSource.query(
      'UPDATE dead_letter SET tries = tries + 1, last_error = $2, last_failed_at = now(), retry_requested_at = NULL WHERE id = $1',
      [id, reason],
    );
    return new AppError('conflict', `The event failed again: ${reason}`, {}, { cause });
  }
}
