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
  /** Holds the permit too: it is given once both keys have room, and neither counts it before. */
  readonly alsoKey?: string;
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
  /** One of its keys holds all that a key may hold; otherwise all permits are held. */
  readonly isKeyFull: boolean;
  /** While it waited no permit was given to its key: what holds them does not come to an end. */
  readonly isStalled: boolean;
}

interface Waiter {
  readonly alsoKey: string | undefined;
  /** Hands a permit over. */
  readonly enter: () => void;
}

/** The waiters of one key, in the order in which they came. */
interface Line {
  readonly urgent: Set<Waiter>;
  readonly others: Set<Waiter>;
  /** Permits that have been handed over. */
  served: number;
}

/**
 * A semaphore whose permits are shared fairly by key, within one process. A permit that comes free goes to the waiting
 * key that holds the fewest; keys that hold as many take turns, and each serves its waiters in the order in which they
 * came (max-min fairness). A key that holds none waits for one permit of each other key at most. That does not
 * hold for a waiter whose second key (`alsoKey`) is full: others are served before it, however many they are.
 */
export class FairSemaphore {
  /** By key. */
  readonly #held = new Map<string, number>();
  #heldByAll = 0;
  /** By key, in the order of their turns. */
  readonly #lines = new Map<string, Line>();
  #waiting = 0;
  /** Of these, those with a second key. */
  #waitingForTwo = 0;
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
      this.#release(options);
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
      if (isHeld) this.#release(options);
      isHeld = false;
    };
  }

  /** Takes a permit where one is free; otherwise resolves when one has been handed over. */
  #enter(options: AcquireOptions): Promise<void> | undefined {
    options.signal?.throwIfAborted();
    const { key, alsoKey } = keysOf(options);
    const isFree = this.#heldByAll < this.#bounds.permits && this.#hasRoom(key) && this.#hasRoom(alsoKey);
    if (!isFree) return this.#wait(options);
    this.#count(key, alsoKey, 1);
    const line = this.#lines.get(key);
    if (line) line.served += 1;
    return undefined;
  }

  #wait(options: AcquireOptions): Promise<void> {
    const { signal, patienceMs = this.#bounds.patienceMs, isUrgent = false } = options;
    const { key, alsoKey } = keysOf(options);
    const { maxWaiting, maxWaitingPerKey } = this.#bounds;
    const line = this.#lines.get(key) ?? { urgent: new Set(), others: new Set(), served: 0 };
    const isTooLong = this.#waiting >= maxWaiting || lengthOf(line) >= maxWaitingPerKey;
    if (isTooLong && !isUrgent) throw this.#refused(options, 0, false);
    const { served } = line;
    const waiters = isUrgent ? line.urgent : line.others;
    return new Promise((resolve, reject) => {
      const leaving = (settle: () => void) => (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        waiters.delete(waiter);
        this.#waiting -= 1;
        if (alsoKey !== undefined) this.#waitingForTwo -= 1;
        if (lengthOf(line) === 0) this.#lines.delete(key);
        settle();
      };
      const waiter = { alsoKey, enter: leaving(resolve) };
      const abort = leaving(() => reject(signal?.reason as Error));
      const giveUp = leaving(() => reject(this.#refused(options, patienceMs, line.served === served)));
      const timer = patienceMs === Infinity ? undefined : setTimeout(giveUp, patienceMs);
      signal?.addEventListener('abort', abort, { once: true });
      waiters.add(waiter);
      this.#lines.set(key, line);
      this.#waiting += 1;
      if (alsoKey !== undefined) this.#waitingForTwo += 1;
    });
  }

  #release(options: AcquireOptions): void {
    const { key, alsoKey } = keysOf(options);
    // Where others were free, and nobody has a second key, this key alone was in the way of those who wait.
    const isOfOthers = this.#heldByAll === this.#bounds.permits || alsoKey !== undefined || this.#waitingForTwo > 0;
    this.#count(key, alsoKey, -1);
    while (this.#heldByAll < this.#bounds.permits) {
      const next = this.#next(isOfOthers ? this.#lines.keys() : [key]);
      if (!next) return;
      // Behind the others.
      this.#lines.delete(next.key);
      this.#lines.set(next.key, next.line);
      this.#count(next.key, next.waiter.alsoKey, 1);
      next.line.served += 1;
      next.waiter.enter();
    }
  }

  #next(keys: Iterable<string>): { key: string; line: Line; waiter: Waiter } | undefined {
    let next: { key: string; line: Line; waiter: Waiter } | undefined;
    let fewest = this.#bounds.permitsPerKey;
    for (const key of keys) {
      const [line, held] = [this.#lines.get(key), this.#heldBy(key)];
      const waiter = line && held < fewest ? this.#firstOf(line) : undefined;
      if (line && waiter) [next, fewest] = [{ key, line, waiter }, held];
      if (fewest === 0) break;
    }
    return next;
  }

  #firstOf({ urgent, others }: Line): Waiter | undefined {
    for (const waiters of [urgent, others])
      for (const waiter of waiters) if (this.#hasRoom(waiter.alsoKey)) return waiter;
    return undefined;
  }

  #heldBy(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  #hasRoom(key: string | undefined): boolean {
    return key === undefined || this.#heldBy(key) < this.#bounds.permitsPerKey;
  }

  #count(key: string, alsoKey: string | undefined, more: 1 | -1): void {
    this.#heldByAll += more;
    for (const each of alsoKey === undefined ? [key] : [key, alsoKey]) {
      const held = this.#heldBy(each) + more;
      if (held > 0) this.#held.set(each, held);
      else this.#held.delete(each);
    }
  }

  #refused(options: AcquireOptions, waitedMs: number, isStalled: boolean): Error {
    const { key, alsoKey } = keysOf(options);
    return this.refusal({ waitedMs, isKeyFull: !this.#hasRoom(key) || !this.#hasRoom(alsoKey), isStalled });
  }
}

/** A second key that is the first counts once. */
function keysOf({ key = '', alsoKey }: AcquireOptions): { key: string; alsoKey: string | undefined } {
  return { key, alsoKey: alsoKey === key ? undefined : alsoKey };
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
