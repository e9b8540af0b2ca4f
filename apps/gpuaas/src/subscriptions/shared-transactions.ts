import type { CallContext } from '@atoll/contracts';
import { callInHand, type CallInHand, type Transactions } from '@atoll/database';
import { isAppError, type AppError } from '@atoll/errors';
import type { EntityManager } from 'typeorm';
import { GroupCommit, type Origin } from './group-commit.js';

interface Call {
  readonly context: CallContext;
}

/** A request with the call that it came by. */
interface Shared<Request> {
  readonly request: Request;
  readonly call: CallInHand | undefined;
}

/** A request in its transaction, and what answers it. */
export type Answerable<Request, Answer> = Request & { readonly answer: (answer: Answer | AppError) => void };

/** Requests of one transaction, at most. */
const maxTogether = 100;

/**
 * Transactions that requests share: those of one key that arrive while this process has a transaction under way for
 * others of it (ADR 24). It costs little more than that of one request alone, and takes one connection.
 */
export class SharedTransactions<Request extends Call, Answer extends object> {
  private readonly together = new GroupCommit<Shared<Request>, Answer>(maxTogether, (all) => this.workTogether(all));

  /** `work` answers each request by itself, with its answer or an error: what it refuses it has not begun to do. */
  constructor(
    private readonly transactions: Transactions,
    private readonly work: (manager: EntityManager, all: readonly Answerable<Request, Answer>[]) => Promise<void>,
  ) {}

  /**
   * Under an `Idempotency-Key` once. Throws what `work` answers, `unavailable` where too many requests of the key wait,
   * and `deadline_exceeded` where one has waited too long.
   */
  add(key: string, origin: Origin, request: Request): Promise<Answer> {
    return this.together.add(key, origin, { request, call: callInHand() });
  }

  private workTogether(all: readonly Shared<Request>[]): Promise<(Answer | Error)[]> {
    const calls = all.map(({ call, request: { context } }) => ({
      call,
      deadlineAtMs: context.deadlineAtMs,
      idempotency: context.idempotency,
    }));
    return this.transactions.onceShared<Answer>(calls, async (manager, places) => {
      const found: (Answer | AppError)[] = [];
      const requests = places.flatMap((place) => all[place]?.request ?? []);
      await this.work(
        manager,
        requests.map((request, at) => ({ ...request, answer: (answer) => void (found[at] = answer) })),
      );
      return found;
    });
  }
}

/** Answers the requests that are refused, and returns the others, each with its admission. */
export function admitted<Request extends Answerable<object, never>, Admission extends object>(
  requests: readonly Request[],
  decisions: readonly (Admission | AppError)[],
): (Request & { readonly admission: Admission })[] {
  return requests.flatMap((request, place) => {
    const admission = decisions[place];
    if (!admission) throw new Error('A request got no decision.');
    if (!isAppError(admission)) return [{ ...request, admission }];
    request.answer(admission);
    return [];
  });
}
