/** Of one turn of the event loop; what a piece takes beyond it is its own size. */
const usualBudgetMs = 2;

/**
 * Work of many, in small pieces, in one thread that has other work too: a turn of the event loop does some pieces, then
 * lets everything else run. Each of the waiting is served in turn, whatever another has queued.
 */
export class FairTurns {
  /** By whom they belong to, in the order in which they are served next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isScheduled = false;

  constructor(
    private readonly budgetMs = usualBudgetMs,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Runs a piece of work in a later turn. It must not throw, and is best short: nothing interrupts it. */
  queue(who: string, piece: () => void): void {
    const pieces = this.#waiting.get(who);
    if (pieces) pieces.push(piece);
    else this.#waiting.set(who, [piece]);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#serve());
  }

  #serve(): void {
    this.#isScheduled = false;
    const lateMs = this.nowMs() + this.budgetMs;
    do this.#serveNext();
    while (this.#waiting.size > 0 && this.nowMs() < lateMs);
    if (this.#waiting.size > 0) this.#schedule();
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
    const [who, pieces] = next;
    const piece = pieces.shift();
    this.#waiting.delete(who);
    if (pieces.length > 0) this.#waiting.set(who, pieces);
    piece?.();
  }
}
