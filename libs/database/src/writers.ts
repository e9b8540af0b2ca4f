import { isPlatformAdmin, type CallContext } from '@atoll/contracts';
import { stillRunning, tooManyRequests } from '@atoll/errors';
import { FairSemaphore } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Transactions, type OnceOptions } from './transactions.js';

type Work<T> = (manager: EntityManager) => Promise<T>;

/** Writers of one lane that may wait in this process; one more is refused at once. */
const maxWaitingPerKey = 32;
/**
 * Of the time that the caller still waits, what the transaction itself may take. Of the rest, half is spent on waiting
 * for the turn.
 */
const workMs = 1_000;

/**
 * Transactions that wait for each other in the database: at the row of one team or user, or for a turn (`takeTurn`). In
 * each replica those of one lane run one at a time and wait without a connection: however many they are, also while
 * another replica is frozen in the middle of one of them, they hold one connection of the pool, and others find theirs.
 */
@Injectable()
export class Writers {
  private readonly turns = new FairSemaphore({ permitsPerKey: 1, maxWaitingPerKey }, () => tooManyRequests(1));
  private readonly running = new Set<string>();

  constructor(private readonly transactions: Transactions) {}

  /**
   * `Transactions.run`, when it is this writer's turn among those of `lane`, which is named by what is locked. Throws
   * `too_many_requests` for a writer that would wait behind 32 others, or has waited in vain: for 2 s of a deadline of
   * 5 s. The operator's go first, in their order, and are not refused for the number of those who wait.
   */
  async run<T>(lane: string, context: CallContext, work: Work<T>): Promise<T> {
    return this.inTurn(lane, context, () => this.transactions.run(work));
  }

  /**
   * `Transactions.once`, as `run`. Where a call with the same `Idempotency-Key` waits or runs here, it does not wait:
   * it returns the reply that is kept, or throws `conflict` where there is none.
   */
  async once<T extends object>(
    lane: string,
    context: CallContext,
    work: Work<T>,
    options?: OnceOptions<T>,
  ): Promise<T> {
    const { idempotency } = context;
    const call = () => this.inTurn(lane, context, () => this.transactions.once(context, work, options));
    if (!idempotency) return call();
    const key = `${idempotency.scope}\0${idempotency.key}`;
    if (this.running.has(key)) {
      // One that only reads the reply that is kept counts as running too.
      const kept = await this.transactions.kept<T>(context);
      if (kept) return kept;
      throw stillRunning();
    }
    this.running.add(key);
    try {
      return await call();
    } finally {
      this.running.delete(key);
    }
  }

  private inTurn<T>(lane: string, context: CallContext, work: () => Promise<T>): Promise<T> {
    const patienceMs = Math.max(0, (context.deadlineAtMs - Date.now() - workMs) / 2);
    return this.turns.run(work, { key: lane, patienceMs, isUrgent: isPlatformAdmin(context.caller) });
  }
}
