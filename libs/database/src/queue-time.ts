/**
 * How long some work waits for database connections: while several of its statements wait at once, the time counts
 * once.
 */
export class QueueTime {
  private waiting = 0;
  private sinceMs = 0;
  private beforeMs = 0;

  /** `owner`: whose work it is. Owners take turns at connections. Left out: it is an owner by itself. */
  constructor(
    readonly owner?: unknown,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Milliseconds so far. */
  get ms(): number {
    return this.beforeMs + (this.waiting > 0 ? this.nowMs() - this.sinceMs : 0);
  }

  get isWaiting(): boolean {
    return this.waiting > 0;
  }

  /** A connection is asked for. Call what is returned once, when it was given or refused. */
  begin(): () => void {
    if (this.waiting === 0) this.sinceMs = this.nowMs();
    this.waiting += 1;
    return () => {
      this.beforeMs = this.waiting === 1 ? this.ms : this.beforeMs;
      this.waiting -= 1;
    };
  }
}
