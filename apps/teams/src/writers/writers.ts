import { isPlatformAdmin, type CallContext } from '@atoll/contracts';
import { Transactions, type OnceOptions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';

type Work<T> = (manager: EntityManager) => Promise<T>;
/** Called when it is this writer's turn. */
type Waiting = () => void;

/** Writers of one team or user that may wait in this process; one more is refused at once. */
const maxWaiting = 32;
/** Of the caller's patience, what the transaction itself may take. */
const workMs = 1_000;

/**
 * Transactions that lock the row of one team, or of one user. In each replica they run one at a time and wait for
 * their turn without a connection: however many writers one team has, they hold one connection of the pool.
 */
@Injectable()
export class Writers {
  private readonly lanes = new Map<string, Waiting[]>();
  private readonly running = new Set<string>();

  constructor(
    private readonly transactions: Transactions,
    private readonly settings: TeamsSettings,
  ) {}

  /**
   * `Transactions.run`, when it is this writer's turn among those of `lockedId`. Throws `too_many_requests` for a
   * writer that would wait behind 32 others, or has waited for `writerPatienceMs`. The operator goes first and is not refused for
   * the number of those who wait.
   */
  async run<T>(lockedId: string, context: CallContext, work: Work<T>): Promise<T> {
    return this.inTurn(lockedId, context, () => this.transactions.run(work));
  }

  /** `Transactions.once`, as `run`. Throws `conflict` at once where a call with the same `Idempotency-Key` waits or runs here. */
  async once<T extends object>(lockedId: string, context: CallContext, work: Work<T>, options?: OnceOptions<T>): Promise<T> {
    const { idempotency } = context;
    const call = () => this.inTurn(lockedId, context, () => this.transactions.once(context, work, options));
    if (!idempotency) return call();
    const key = `${idempotency.scope}\0${idempotency.key}`;
    if (this.running.has(key)) throw new AppError('conflict', 'A request with this Idempotency-Key is still running.');
    this.running.add(key);
    try {
      return await call();
    } finally {
      this.running.delete(key);
    }
  }

  private async inTurn<T>(lockedId: string, context: CallContext, work: () => Promise<T>): Promise<T> {
    if (!(await this.turn(lockedId, context))) {
      throw new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds: 1 });
    }
    try {
      return await work();
    } finally {
      this.leave(lockedId);
    }
  }

  private async turn(lockedId: string, context: CallContext): Promise<boolean> {
    const waiting = this.lanes.get(lockedId);
    if (!waiting) {
      this.lanes.set(lockedId, []);
      return true;
    }
    const isOperator = isPlatformAdmin(context.caller);
    if (waiting.length >= maxWaiting && !isOperator) return false;
    return new Promise<boolean>((resolve) => {
      const patienceMs = Math.max(0, Math.min(this.settings.writerPatienceMs, remainingMs(context) - workMs));
      const giveUp = setTimeout(() => {
        waiting.splice(waiting.indexOf(called), 1);
        resolve(false);
      }, patienceMs);
      const called: Waiting = () => {
        clearTimeout(giveUp);
        resolve(true);
      };
      if (isOperator) waiting.unshift(called);
      else waiting.push(called);
    });
  }

  private leave(lockedId: string): void {
    const next = this.lanes.get(lockedId)?.shift();
    if (next) next();
    else this.lanes.delete(lockedId);
  }
}
