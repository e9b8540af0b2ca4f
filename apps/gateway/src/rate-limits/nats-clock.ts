import { randomUUID } from 'node:crypto';
import type { KV } from '@nats-io/kv';

/** How long a measurement counts, by this process's clock: a crystal drifts by some milliseconds meanwhile. */
const renewAfterMs = 30_000;
/** The fastest of them counts. */
const samples = 3;

/**
 * The time of the NATS server, by which replicas judge the buckets that they share: the clocks of their hosts differ.
 * It is this process's clock and the offset between the two, which is measured by entries of its own: NATS puts a time
 * on each, and that time lies between the moments before and after the put (Cristian, "Probabilistic clock
 * synchronization", 1989). So the offset is wrong by half of the fastest put's duration at most, and by less than a
 * millisecond for rounding.
 */
export class NatsClock {
  readonly #entry = `clock-${randomUUID()}`;
  #measured: { kv: KV; atMs: number; offsetMs: Promise<number> } | undefined;

  /** `own` is a clock of this process that is never set, in milliseconds since whenever. */
  constructor(private readonly own: () => number) {}

  /**
   * Epoch milliseconds. Measures the offset first if none is known for this store, or if it is old. Throws what NATS
   * throws then.
   */
  async now(kv: KV): Promise<number> {
    const atMs = this.own();
    const last = this.#measured;
    const isGood = last?.kv === kv && atMs - last.atMs <= renewAfterMs;
    const measured = isGood ? last : { kv, atMs, offsetMs: this.#measure(kv) };
    this.#measured = measured;
    try {
      const offsetMs = await measured.offsetMs;
      return this.own() + offsetMs;
    } catch (error) {
      if (this.#measured === measured) this.#measured = undefined;
      throw error;
    }
  }

  async #measure(kv: KV): Promise<number> {
    let best = { offsetMs: 0, durationMs: Infinity };
    for (let sample = 0; sample < samples; sample += 1) {
      const beforeMs = this.own();
      await kv.put(this.#entry, '');
      const afterMs = this.own();
      const entry = await kv.get(this.#entry);
      if (!entry) throw new Error('NATS does not have the entry that it has just stored');
      const durationMs = afterMs - beforeMs;
      if (durationMs < best.durationMs)
        best = { offsetMs: entry.created.getTime() - (beforeMs + afterMs) / 2, durationMs };
    }
    return best.offsetMs;
  }
}
