/** Turns of the loop in a row that are left to everything else, where something asks for each. */
const mostPassed = 8;

/**
 * The event loop, shared (a cooperative round-robin scheduler): work is queued in small pieces, a turn of the loop does
 * some of them, then lets everything else run. Keys take turns, each served in its own order, whatever another has
 * queued.
 */
export class Turns {
  /** Pieces by key, in the order in which the keys are served next. */
  readonly #waiting = new Map<string, Set<{ readonly run: () => void }>>();
  #isScheduled = false;
  #isPassed = false;
  #passed = 0;

  /**
   * `budgetMs`: of one turn of the loop, with what pieces go on to do in promises and ticks; what a piece takes beyond
   * it is its own size. 0: each turn does one piece, however many there are.
   */
  constructor(
    private readonly budgetMs = 0,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /**
   * Runs a piece of work in a later turn. It must not throw, and is best short: nothing interrupts it. What it returns
   * withdraws the piece, where it has not run.
   */
  queue(key: string, run: () => void): () => void {
    const piece = { run };
    const pieces = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, pieces.add(piece));
    this.#schedule();
    return () => {
      if (pieces.delete(piece) && pieces.size === 0) this.#waiting.delete(key);
    };
  }

  /** Leaves the next turn of the loop to everything else, at most `mostPassed` times in a row. */
  pass(): void {
    this.#isPassed = true;
  }

  /** Resolves when it is the turn of a slice. `items`: what the slice that ends here has worked on. */
  next(_items: number): Promise<void> {
    return new Promise((resolve) => void this.queue('', resolve));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#serveInNextTurn();
  }

  #serveInNextTurn(): void {
    setImmediate(() => this.#serve());
  }

  #serve(): void {
    this.#passed = this.#isPassed ? this.#passed + 1 : 0;
    this.#isPassed = false;
    if (this.#passed % (mostPassed + 1) > 0) this.#serveInNextTurn();
    else this.#serveUntil(this.nowMs() + this.budgetMs);
  }

  #serveUntil(lateMs: number): void {
    afterPromises(() => {
      if (this.#waiting.size === 0) this.#isScheduled = false;
      else if (this.nowMs() < lateMs) this.#serveUntil(lateMs);
      else this.#serveInNextTurn();
    });
    this.#serveNext();
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
    const [key, pieces] = next;
    const [piece] = pieces;
    this.#waiting.delete(key);
    if (piece) pieces.delete(piece);
    if (pieces.size > 0) this.#waiting.set(key, pieces);
    piece?.run();
  }
}

/**
 * Runs `next` in the same turn of the loop, once this piece of it has ended and promises have done all that they could
 * without I/O: Node runs a tick only when no microtask waits.
 */
function afterPromises(next: () => void): void {
  queueMicrotask(() => process.nextTick(next));
}
