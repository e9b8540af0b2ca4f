import type pg from 'pg';

/** pg's callback of `connect`. */
export type Given = (
  ...args: [error: Error | undefined, client: pg.PoolClient | undefined, release: (error?: unknown) => void]
) => void;

interface Waiting {
  readonly given: Given;
  timer?: NodeJS.Timeout;
  isRefused?: true;
}

/**
 * Those who wait for a connection of a pool take turns by their owners: the first of each goes before the second of
 * any, so that one of whom hundreds wait delays the others by one connection each time, and not by hundreds. No
 * semaphore counts the connections: the pool does, which opens, drops and lends them.
 */
export class ConnectionTurns {
  /** By owner, in the order in which they have their next turn. */
  private readonly line = new Map<unknown, Set<Waiting>>();

  /** Whoever waits for `patienceMs` is refused as the pool does it; 0: nobody is. */
  constructor(
    private readonly pool: pg.Pool,
    private readonly patienceMs: number,
  ) {
    pool.on('release', () => this.serve());
  }

  take(owner: unknown, given: Given): void {
    const waiting: Waiting = { given };
    // Before it may be served: from here on it waits, whether for its turn or for the connection.
    if (this.patienceMs > 0) {
      waiting.timer = setTimeout(() => this.refuse(owner, waiting), this.patienceMs).unref();
    }
    this.line.set(owner, (this.line.get(owner) ?? new Set()).add(waiting));
    this.serve();
  }

  /** The pool's own line is first come, first served: one at most stands in it. */
  private serve(): void {
    while (this.pool.waitingCount === 0) {
      const next = this.next();
      if (!next) return;
      this.pool.connect((error, client, release) => {
        this.serve();
        clearTimeout(next.timer);
        if (!next.isRefused) next.given(error, client, release);
        // It came too late; somebody else has it.
        else if (client) release();
      });
    }
  }

  private next(): Waiting | undefined {
    for (const [owner, those] of this.line) {
      this.line.delete(owner);
      const [first] = those;
      if (!first) continue;
      those.delete(first);
      if (those.size > 0) this.line.set(owner, those);
      return first;
    }
    return undefined;
  }

  private refuse(owner: unknown, waiting: Waiting): void {
    this.line.get(owner)?.delete(waiting);
    waiting.isRefused = true;
    waiting.given(new Error('timeout exceeded when trying to connect'), undefined, () => undefined);
  }
}
