/** Each is unlimited unless given. */
export interface SemaphoreBounds {
  /** Permits that all keys together hold at once. */
  readonly permits?: number;
  /** Permits that each key holds at once. */
  readonly permitsPerKey?: number;
  /** Waiters of all keys together. */
  readonly maxWaiting?: number;
  /** Waiters of each key. */
  readonly maxWaitingPerKey?: number;
  /** How long each waits, in milliseconds. */
  readonly patienceMs?: number;
}

export interface AcquireOptions {
  /** Who shares permits and waits in turn; "" unless given. */
  readonly key?: string;
  /** How long this one waits, in milliseconds, in place of the patience of all. */
  readonly patienceMs?: number;
  /** Ends the wait; acquiring rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Goes before the others of its key, and is not refused for the number of waiters. */
  readonly isUrgent?: boolean;
}

/** Why a permit is refused. */
export interface Refused {
  /** How long it has waited, in milliseconds; 0 where there were too many waiters. */
  readonly waitedMs: number;
  /** Its key holds all that a key may hold; otherwise all permits are held. */
  readonly isKeyFull: boolean;
  /** While it waited no permit was given to its key: what holds them does not come to an end. */
  readonly isStalled: boolean;
}

/** The waiters of one key, in the order in which they came: what hands a permit over to each. */
interface Line {
  readonly urgent: Set<() => void>;
  readonly others: Set<() => void>;
  /** Permits that have been handed over. */
  served: number;
}

/**
 * A semaphore whose permits are shared fairly by key, within one process. A permit that comes free goes to the waiting
 * key that holds the fewest; keys that hold as many take turns, and each serves its waiters in the order in which they
 * came (max-min fairness). A key that holds none waits for one permit of each other key at most.
 */
export class FairSemaphore {
  /** By key. */
  readonly #held = new Map<string, number>();
  #heldByAll = 0;
  /** By key, in the order of their turns. */
  readonly #lines = new Map<string, Line>();
  #waiting = 0;
  readonly #bounds: Required<SemaphoreBounds>;

  constructor(
    bounds: SemaphoreBounds,
    /** Made for whoever has waited too long, or finds too many waiters. */
    private readonly refusal: (why: Refused) => Error = () => new Error('Too much waits.'),
  ) {
    this.#bounds = { ...unbounded, ...bounds };
  }

  /** Runs the work with a permit, at once where one is free. Throws as `acquire`, and what the work throws. */
  async run<T>(work: () => Promise<T>, options: AcquireOptions = {}): Promise<T> {
    const turn = this.#enter(options);
    if (turn) await turn;
    try {
      return await work();
    } finally {
      this.#release(options.key);
    }
  }

  /**
   * Resolves with what releases the permit; to call it again does nothing. Throws the refusal, or the reason of the
   * signal.
   */
  async acquire(options: AcquireOptions = {}): Promise<() => void> {
    const turn = this.#enter(options);
    if (turn) await turn;
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(options.key);
      isHeld = false;
    };
  }

  /** Takes a permit where one is free; otherwise resolves when one has been handed over. */
  #enter(options: AcquireOptions): Promise<void> | undefined {
    options.signal?.throwIfAborted();
    const { key = '' } = options;
    const isFree = this.#heldByAll < this.#bounds.permits && this.#heldBy(key) < this.#bounds.permitsPerKey;
    if (!isFree) return this.#wait(key, options);
    this.#count(key, 1);
    return undefined;
  }

  #wait(
    key: string,
    { signal, patienceMs = this.#bounds.patienceMs, isUrgent = false }: AcquireOptions,
  ): Promise<void> {
    const { maxWaiting, maxWaitingPerKey } = this.#bounds;
    const line = this.#lines.get(key) ?? { urgent: new Set(), others: new Set(), served: 0 };
    const isTooLong = this.#waiting >= maxWaiting || lengthOf(line) >= maxWaitingPerKey;
    if (isTooLong && !isUrgent) throw this.#refused(key, 0, false);
    const { served } = line;
    const waiters = isUrgent ? line.urgent : line.others;
    return new Promise((resolve, reject) => {
      const leaving = (settle: () => void) => (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        waiters.delete(enter);
        this.#waiting -= 1;
        if (lengthOf(line) === 0) this.#lines.delete(key);
        settle();
      };
      const enter = leaving(resolve);
      const abort = leaving(() => reject(signal?.reason as Error));
      const giveUp = leaving(() => reject(this.#refused(key, patienceMs, line.served === served)));
      const timer = patienceMs === Infinity ? undefined : setTimeout(giveUp, patienceMs);
      signal?.addEventListener('abort', abort, { once: true });
      waiters.add(enter);
      this.#lines.set(key, line);
      this.#waiting += 1;
    });
  }

  #release(key = ''): void {
    // Where others were free, the key alone was in the way of those who wait.
    const keys = this.#heldByAll === this.#bounds.permits ? this.#lines.keys() : [key];
    this.#count(key, -1);
    const [next, line] = this.#next(keys) ?? [];
    if (next === undefined || !line) return;
    // Behind the others.
    this.#lines.delete(next);
    this.#lines.set(next, line);
    this.#count(next, 1);
    line.served += 1;
    const [enter] = line.urgent.size > 0 ? line.urgent : line.others;
    enter?.();
  }

  #next(keys: Iterable<string>): [string, Line] | undefined {
    let next: [string, Line] | undefined;
    let fewest = this.#bounds.permitsPerKey;
    for (const key of keys) {
      const [line, held] = [this.#lines.get(key), this.#heldBy(key)];
      if (line && held < fewest) [next, fewest] = [[key, line], held];
      if (fewest === 0) break;
    }
    return next;
  }

  #heldBy(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  #count(key: string, more: 1 | -1): void {
    this.#heldByAll += more;
    const held = this.#heldBy(key) + more;
    if (held > 0) this.#held.set(key, held);
    else this.#held.delete(key);
  }

  #refused(key: string, waitedMs: number, isStalled: boolean): Error {
    return this.refusal({ waitedMs, isKeyFull: this.#heldBy(key) >= this.#bounds.permitsPerKey, isStalled });
  }
}

const unbounded: Required<SemaphoreBounds> = {
  permits: Infinity,
  permitsPerKey: Infinity,
  maxWaiting: Infinity,
  maxWaitingPerKey: Infinity,
  patienceMs: Infinity,
};

function lengthOf({ urgent, others }: Line): number {
  return urgent.size + others.size;
}
