import { incremented, peeked, type BucketRecord, type Buckets, type Demand } from './buckets.js';
import { returnToken } from './token-bucket.js';

/** Token buckets of one process: when each will be full, by limit and by key. */
export class MemoryBuckets implements Buckets {
  readonly #limits = new Map<string, Map<string, number>>();

  constructor(
    private readonly now: () => number,
    /** Of each limit, so that a flood from many addresses cannot push out the buckets of callers. */
    private readonly maxBuckets = 100_000,
  ) {}

  get size(): number {
    return [...this.#limits.values()].reduce((sum, { size }) => sum + size, 0);
  }

  increment(key: string, ttl: number, limit: number, _blockDuration: number, name: string): Promise<BucketRecord> {
    return Promise.resolve(this.#take({ name, key, capacity: limit, refillMs: ttl }));
  }

  incrementAll(demands: readonly Demand[]): Promise<BucketRecord[]> {
    const nowMs = this.now();
    const seen = demands.map((demand) => peeked(this.#bucketsOf(demand).get(demand.key), demand, nowMs));
    if (seen.some(({ isBlocked }) => isBlocked)) return Promise.resolve(seen);
    return Promise.resolve(demands.map((demand) => this.#take(demand)));
  }

  decrement(demand: Demand): Promise<void> {
    const buckets = this.#bucketsOf(demand);
    const fullAtMs = buckets.get(demand.key);
    if (fullAtMs !== undefined) buckets.set(demand.key, returnToken(fullAtMs, demand));
    return Promise.resolve();
  }

  #take(demand: Demand): BucketRecord {
    const buckets = this.#bucketsOf(demand);
    const nowMs = this.now();
    const { record, fullAtMs } = incremented(buckets.get(demand.key), demand, nowMs);
    buckets.set(demand.key, fullAtMs);
    if (buckets.size > this.maxBuckets) this.#makeRoom(buckets, nowMs);
    return record;
  }

  #bucketsOf({ name }: Demand): Map<string, number> {
    let buckets = this.#limits.get(name);
    if (!buckets) this.#limits.set(name, (buckets = new Map<string, number>()));
    return buckets;
  }

  /**
   * A full bucket is equivalent to no bucket, so full ones are dropped. If that frees less than a tenth, the oldest are
   * dropped too.
   */
  #makeRoom(buckets: Map<string, number>, nowMs: number): void {
    for (const [key, fullAtMs] of buckets) if (fullAtMs <= nowMs) buckets.delete(key);
    const target = Math.floor(this.maxBuckets * 0.9);
    for (const key of buckets.keys()) {
      if (buckets.size <= target) break;
      buckets.delete(key);
    }
  }
}
