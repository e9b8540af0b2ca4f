import { AppError, isAppError } from '@atoll/errors';

interface Waiter<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests of one key. In a longer queue callers would wait past their deadlines. */
const maxWaiters = 2_000;

/**
 * Serves concurrent requests of one key in batches: all that arrive while a batch is under way form the next one. The
 * first request of a key is served at once; no request waits for others to arrive.
 */
export class Together<Request, Answer extends object> {
  private readonly queues = new Map<string, Waiter<Request, Answer>[]>();

  /**
   * `work` answers up to `limit` requests in their order, each with its answer or an error. If it throws anything but
   * an AppError, it is called again for each request by itself, so that no request fails because of another.
   */
  constructor(
    private readonly limit: number,
    private readonly work: (requests: readonly Request[]) => Promise<(Answer | Error)[]>,
  ) {}

  /** Throws the error of this request, and `unavailable` if too many requests of the key wait. */
  add(key: string, request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const waiter = { request, resolve, reject };
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
    for (;;) {
      const waiters = this.queues.get(key)?.splice(0, this.limit) ?? [];
      if (waiters.length === 0) break;
      await this.answer(waiters);
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
      if (waiters.length === 1 || isAppError(error)) for (const { reject } of waiters) reject(error);
      else for (const waiter of waiters) await this.answer([waiter]);
    }
  }
}
