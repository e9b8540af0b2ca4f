/**
 * Texts that were added within the last `maxAgeMs`. Above `maxEntries` those go whose last addition is the longest ago.
 */
export class RecentSet {
  /** When each was added last, the oldest first. */
  readonly #addedAtMs = new Map<string, number>();

  constructor(
    private readonly now: () => number,
    private readonly bounds: { maxAgeMs: number; maxEntries: number },
  ) {}

  get size(): number {
    return this.#addedAtMs.size;
  }

  add(text: string): void {
    this.#addedAtMs.delete(text);
    this.#addedAtMs.set(text, this.now());
    for (const [oldest, addedAtMs] of this.#addedAtMs) {
      if (this.#isRecent(addedAtMs) && this.#addedAtMs.size <= this.bounds.maxEntries) break;
      this.#addedAtMs.delete(oldest);
    }
  }

  has(text: string): boolean {
    const addedAtMs = this.#addedAtMs.get(text);
    return addedAtMs !== undefined && this.#isRecent(addedAtMs);
  }

  delete(text: string): void {
    this.#addedAtMs.delete(text);
  }

  /** An addition in the future does not count: the clock was set back. */
  #isRecent(addedAtMs: number): boolean {
    const ageMs = this.now() - addedAtMs;
    return ageMs >= 0 && ageMs < this.bounds.maxAgeMs;
  }
}
