import { isPlatformAdmin, type CallContext } from '@atoll/contracts';
import { AppError, stillRunning } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Transactions, type OnceOptions } from './transactions.js';

type Work<T> = (manager: EntityManager) => Promise<T>;
interface Waiting {
  goesFirst: boolean;
  /** When it is this writer's turn. */
  call(): void;
}

export interface LaneOptions {
  /**
   * Teams meet in this lane, and none is refused for the number of others: 2,000 may wait, and who has waited in vain is told `unavailable`. They take turns,
   * whatever the number of writers that each has, and whoever calls for them. `lane` is what they wait for, in words, such as `this pool`; `of` is whose writer it is.
   */
  shared?: { lane: string; of: string };
}

/** Writers of one lane that may wait in this process; one more is refused at once. */
const maxWaiting = { own: 32, shared: 2_000 };
/** Of the time that the caller still waits, what the transaction itself may take. Of the rest, half is spent on waiting for the turn. */
const workMs = 1_000;

/**
 * Transactions that wait for each other in the database: at the row of one team or user, or for a turn (`takeTurn`). In each replica those of
 * one lane run one at a time and wait without a connection: however many they are, also while another replica is frozen in the middle of one
 * of them, they hold one connection of the pool, and others find theirs.
 */
@Injectable()
export class Writers {
  /** What waits in each lane, by whose it is, in the order in which they are next. */
  private readonly lanes = new Map<string, Map<string, Waiting[]>>();
  private readonly running = new Set<string>();

  constructor(private readonly transactions: Transactions) {}

  /**
   * `Transactions.run`, when it is this writer's turn among those of `lane`, which is named by what is locked. Throws `too_many_requests` for
   * a writer that would wait behind 32 others, or has waited in vain: for 2 s of a deadline of 5 s. The operator's go first, in their order, and are not refused
   * for the number of those who wait. (Otherwise where teams share the lane: see `LaneOptions`.)
   */
  async run<T>(lane: string, context: CallContext, work: Work<T>, options: LaneOptions = {}): Promise<T> {
    return this.inTurn(lane, context, () => this.transactions.run(work), options);
  }

  /**
   * `Transactions.once`, as `run`. Where a call with the same `Idempotency-Key` waits or runs here, it does not wait: it returns the reply that is kept, or throws
   * `conflict` where there is none.
   */
  async once<T extends object>(lane: string, context: CallContext, work: Work<T>, options: OnceOptions<T> & LaneOptions = {}): Promise<T> {
    const { idempotency } = context;
    const call = () => this.inTurn(lane, context, () => this.transactions.once(context, work, options), options);
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

  private async inTurn<T>(lane: string, context: CallContext, work: () => Promise<T>, { shared }: LaneOptions): Promise<T> {
    if (!(await this.turn(lane, context, shared?.of))) {
      if (shared) throw new AppError('unavailable', `Too many requests wait for ${shared.lane}.`, { retryAfterSeconds: 1 });
      throw new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds: 1 });
    }
    try {
      return await work();
    } finally {
      this.leave(lane);
    }
  }

  private async turn(name: string, context: CallContext, of: string | undefined): Promise<boolean> {
    const lane = this.lanes.get(name);
    if (!lane) {
      this.lanes.set(name, new Map());
      return true;
    }
    const goesFirst = of === undefined && isPlatformAdmin(context.caller);
    const room = of === undefined ? maxWaiting.own : maxWaiting.shared;
    if (waitingIn(lane) >= room && !goesFirst) return false;
    const whose = of ?? '';
    return new Promise<boolean>((resolve) => {
      const waiting = lane.get(whose) ?? [];
      const patienceMs = Math.max(0, (context.deadlineAtMs - Date.now() - workMs) / 2);
      const giveUp = setTimeout(() => {
        waiting.splice(waiting.indexOf(own), 1);
        if (waiting.length === 0) lane.delete(whose);
        resolve(false);
      }, patienceMs);
      const call = (): void => {
        clearTimeout(giveUp);
        resolve(true);
      };
      const own: Waiting = { goesFirst, call };
      // The operator's stand in front, in their order.
      const before = goesFirst ? waiting.filter((one) => one.goesFirst).length : waiting.length;
      waiting.splice(before, 0, own);
      lane.set(whose, waiting);
    });
  }

  private leave(name: string): void {
    const lane = this.lanes.get(name);
    const [next] = lane ?? [];
    if (!lane || !next) return void this.lanes.delete(name);
    const [whose, waiting] = next;
    const one = waiting.shift();
    lane.delete(whose);
    if (waiting.length > 0) lane.set(whose, waiting);
    one?.call();
  }
}

function waitingIn(lane: ReadonlyMap<string, readonly Waiting[]>): number {
  return [...lane.values()].reduce((sum, { length }) => sum + length, 0);
}
