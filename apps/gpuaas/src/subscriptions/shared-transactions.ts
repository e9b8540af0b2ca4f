import type { CallContext } from '@atoll/contracts';
import { callInHand, type CallInHand, type Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import type { EntityManager } from 'typeorm';
import { GroupCommit, type Place } from './group-commit.js';

interface Call {
  readonly context: CallContext;
}

/** A request with the call that it came by. */
interface Shared<Request> {
  readonly request: Request;
  readonly call: CallInHand | undefined;
}

/** Requests of one transaction, at most. */
const maxTogether = 100;

/**
 * Transactions that requests share: those of one key that arrive while this process has a transaction under way for
 * others of it (ADR 24). It costs little more than that of one request alone, and takes one connection.
 */
export class SharedTransactions<Request extends Call, Answer extends object> {
  private readonly together = new GroupCommit<Shared<Request>, Answer>(maxTogether, (all) => this.workInTime(all));

  /**
   * `work` answers each request by itself, in their order, with its answer or an error: what it refuses it has not
   * begun to do.
   */
  constructor(
    private readonly transactions: Transactions,
    private readonly work: (manager: EntityManager, all: readonly Request[]) => Promise<readonly (Answer | Error)[]>,
  ) {}

  /**
   * Under an `Idempotency-Key` once. Throws what `work` answers, and `unavailable` where too many requests of the key
   * wait.
   */
  add(key: string, place: Place, request: Request): Promise<Answer> {
    return this.together.add(key, place, { request, call: callInHand() });
  }

  /** Skips requests whose deadline has passed: their callers have been answered. */
  private async workInTime(all: readonly Shared<Request>[]): Promise<(Answer | Error)[]> {
    const nowMs = Date.now();
    const inTime = all.filter(({ request: { context } }) => context.deadlineAtMs > nowMs);
    const calls = inTime.map(({ call, request: { context } }) => ({ call, idempotency: context.idempotency }));
    const answers = await this.transactions.onceShared<Answer>(calls, (manager, places) =>
      this.work(
        manager,
        places.flatMap((at) => inTime[at]?.request ?? []),
      ),
    );
    const late = new AppError('deadline_exceeded', 'The request waited too long for a decision.');
    return all.map((shared) => answers[inTime.indexOf(shared)] ?? late);
  }
}
