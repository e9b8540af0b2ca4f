const windowMs = 60_000;
const keysAtMost = 10_000;

/** Counts by key and minute. A minute begins with the first that is counted. */
export class MinuteCounts {
  readonly #counts = new Map<string, { count: number; readonly sinceMs: number }>();

  constructor(
    readonly atMost: number,
    private readonly nowMs: () => number = Date.now,
  ) {}

  add(key: string): void {
    const known = this.#current(key);
    if (known) known.count += 1;
    else this.#begin(key);
  }

  areTooMany(key: string): boolean {
    return (this.#current(key)?.count ?? 0) >= this.atMost;
  }

  #current(key: string): { count: number } | undefined {
    const known = this.#counts.get(key);
    return known && this.nowMs() - known.sinceMs < windowMs ? known : undefined;
  }

  /** The oldest is forgotten where there are too many: the order of insertion is the order in time. */
  #begin(key: string): void {
    this.#counts.delete(key);
    this.#counts.set(key, { count: 1, sinceMs: this.nowMs() });
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > keysAtMost && oldest !== undefined) this.#counts.delete(oldest);
  }
}
