import { isOutage } from '@atoll/database';
import { AppError } from '@atoll/errors';

/** What a request has in common with others of its key. */
export interface Origin {
  /** Whose request it is: where more wait than a batch takes, of each as many as of any other. */
  readonly owner: string;
  /**
   * What it is about: of several that are about the same a batch takes the first. Left out: nothing that another might
   * be about.
   */
  readonly topic?: string;
}

interface Waiter<Request, Answer> extends Origin {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests of one key. In a longer queue callers would wait past their deadlines. */
const maxWaiters = 2_000;

/**
 * Serves concurrent requests of one key in batches (a group commit): all that arrive while a batch is under way form
 * the next one, in the order in which they came. The first request of a key is served at once; no request waits for
 * others to arrive, and none for all that somebody else has asked for.
 */
export class GroupCommit<Request, Answer extends object> {
  private readonly queues = new Map<string, Waiter<Request, Answer>[]>();

  /**
   * `work` answers up to `limit` requests in their order, each with its answer or an error. If it throws, it is
   * called again for each request by itself, so that no request fails because of another; but for an outage, which
   * would keep each of them waiting.
   */
  constructor(
    private readonly limit: number,
    private readonly work: (requests: readonly Request[]) => Promise<(Answer | Error)[]>,
  ) {}

  /** Throws the error of this request, and `unavailable` if too many requests of the key wait. */
  add(key: string, origin: Origin, request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const waiter = { ...origin, request, resolve, reject };
      const queue = this.queues.get(key);
      if (!queue) {
        this.queues.set(key, [waiter]);
        void this.serve(key);
      } else if (queue.length < maxWaiters) queue.push(waiter);
      else reject(new AppError('unavailable', 'Too many requests wait for this pool.', { retryAfterSeconds: 1 }));
    });
  }

  /** Serves the requests of a key until none waits. */
  private async serve(key: string): Promise<void> {
    for (let waiting = this.queues.get(key) ?? []; waiting.length > 0; waiting = this.queues.get(key) ?? []) {
      const batch = batchOf(waiting, this.limit);
      this.queues.set(
        key,
        waiting.filter((waiter) => !batch.has(waiter)),
      );
      await this.answer([...batch]);
    }
    this.queues.delete(key);
  }

  private async answer(waiters: readonly Waiter<Request, Answer>[]): Promise<void> {
    try {
      const answers = await this.work(waiters.map(({ request }) => request));
      waiters.forEach(({ resolve, reject }, at) => {
        const answer = answers[at];
        if (!answer || answer instanceof Error) reject(answer ?? new Error('A request was not answered.'));
        else resolve(answer);
      });
    } catch (error) {
      if (waiters.length === 1 || isOutage(error)) for (const { reject } of waiters) reject(error);
      else for (const waiter of waiters) await this.answer([waiter]);
    }
  }
}

/** The next to be served, in the order in which they came. */
function batchOf<One extends Origin>(waiting: readonly One[], limit: number): Set<One> {
  const taken = new Map<string, number>();
  const topics = new Set<string>();
  const turns = new Map<One, number>();
  for (const one of waiting) {
    if (one.topic !== undefined && topics.has(one.topic)) continue;
    if (one.topic !== undefined) topics.add(one.topic);
    const turn = taken.get(one.owner) ?? 0;
    taken.set(one.owner, turn + 1);
    turns.set(one, turn);
  }
  const next = [...turns].toSorted(([, turn], [, other]) => turn - other).slice(0, limit);
  const chosen = new Set(next.map(([one]) => one));
  return new Set(waiting.filter((one) => chosen.has(one)));
}
