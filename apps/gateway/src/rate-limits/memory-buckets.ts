import { toRecord, type BucketRecord, type Buckets } from './bucket-record.js';
import { peekToken, takeToken } from './token-bucket.js';

/** Token buckets of one process. */
export class MemoryBuckets implements Buckets {
  readonly #fullAtMs = new Map<string, number>();

  constructor(
    private readonly now: () => number,
    private readonly maxBuckets = 100_000,
  ) {}

  get size(): number {
    return this.#fullAtMs.size;
  }

  increment(key: string, ttl: number, limit: number): Promise<BucketRecord> {
    const nowMs = this.now();
    const size = { capacity: limit, refillMs: ttl };
    const taken = takeToken(this.#fullAtMs.get(key), size, nowMs);
    this.#fullAtMs.set(key, taken.fullAtMs);
    if (this.#fullAtMs.size > this.maxBuckets) this.#makeRoom(nowMs);
    return Promise.resolve(toRecord(taken, size, nowMs));
  }

  peek(key: string, ttl: number, limit: number): Promise<BucketRecord> {
    const nowMs = this.now();
    const size = { capacity: limit, refillMs: ttl };
    return Promise.resolve(toRecord(peekToken(this.#fullAtMs.get(key), size, nowMs), size, nowMs));
  }

  /** Full buckets are the same as none. Where that does not free a tenth, those go that were made first. */
  #makeRoom(nowMs: number): void {
    for (const [key, fullAtMs] of this.#fullAtMs) if (fullAtMs <= nowMs) this.#fullAtMs.delete(key);
    const target = Math.floor(this.maxBuckets * 0.9);
    for (const key of this.#fullAtMs.keys()) {
      if (this.#fullAtMs.size <= target) break;
      this.#fullAtMs.delete(key);
    }
  }
}
