import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { limitsBucket } from '@atoll/service';
import { ThrottledLog } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import { JetStreamApiCodes, JetStreamApiError, jetstream, type JetStreamClient } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { nanos, type NatsConnection } from '@nats-io/transport-node';
import { incremented, peeked, type BucketRecord, type Buckets, type Demand } from './buckets.js';
import { returnToken, type BucketSize } from './token-bucket.js';

export interface NatsBucketsOptions {
  /** The connection while it stands. */
  connection: () => NatsConnection | undefined;
  /** Used while NATS is away: a limit that cannot be shared still holds in each process. */
  local: Buckets;
  /** Epoch milliseconds by a clock that all replicas share. If it throws, buckets are local for a moment. */
  now: (kv: KV) => Promise<number>;
  /** Buckets that are not touched for this long are full and may be forgotten. */
  longestRefillMs: number;
  /**
   * How long an answer of NATS is waited for, and a bucket that other replicas change all the time is tried: at least
   * five times, unless these take three times as long. Default 300.
   */
  answerWithinMs?: number;
}

interface Waiting {
  size: BucketSize;
  /** Whether a token is taken or returned. */
  change: 'take' | 'return';
  settle: (record: BucketRecord | null) => void;
}

const defaultAnswerWithinMs = 300;
/**
 * The longest random delay before a bucket is tried again that another replica has changed: four replicas need half the
 * tries.
 */
const longestDelayMs = 4;
/** On a slow machine one try takes as long as all may: then the first that another replica outruns is not the last. */
const leastTries = 5;
/** For these the time is so many times as long, and no longer: what counts comes before the deadline of the call. */
const timesForLeastTries = 3;
/** After a failure the store is left alone for a moment, so that not every request waits for it. */
const pauseMs = 1_000;

/**
 * Token buckets that all replicas of the gateway share, in a JetStream key-value bucket. Each change compares and sets,
 * so two replicas never grant the same token; requests of one process for one bucket go in one change.
 */
export class NatsBuckets implements Buckets {
  readonly #logger = new Logger(NatsBuckets.name);
  readonly #warnings = new ThrottledLog(({ message }) => this.#logger.warn(message));
  readonly #answerWithinMs: number;
  readonly #waiting = new Map<string, Waiting[]>();
  #store: { connection: NatsConnection; kv: Promise<KV> } | undefined;
  #pausedUntilMs = 0;

  constructor(private readonly options: NatsBucketsOptions) {
    this.#answerWithinMs = options.answerWithinMs ?? defaultAnswerWithinMs;
  }

  async increment(key: string, ttl: number, limit: number, blockDuration: number, name: string): Promise<BucketRecord> {
    const shared = await this.#change(key, { capacity: limit, refillMs: ttl }, 'take');
    return shared ?? this.options.local.increment(key, ttl, limit, blockDuration, name);
  }

  async incrementAll(demands: readonly Demand[]): Promise<BucketRecord[]> {
    // Nothing is left taken where the only one is refused: it needs no look before.
    const [only, another] = demands;
    if (only && !another) return [await this.increment(only.key, only.refillMs, only.capacity, 0, only.name)];
    const seen = await this.#peekAll(demands);
    if (!seen) return this.options.local.incrementAll(demands);
    if (seen.some(({ isBlocked }) => isBlocked)) return seen;
    const records: BucketRecord[] = [];
    for (const [at, demand] of demands.entries()) {
      const record = await this.increment(demand.key, demand.refillMs, demand.capacity, 0, demand.name);
      if (record.isBlocked) {
        // Another request took the last token in between: this one takes none.
        await Promise.all(demands.slice(0, at).map((taken) => this.decrement(taken)));
        return seen.with(at, record);
      }
      records.push(record);
    }
    return records;
  }

  async decrement(demand: Demand): Promise<void> {
    if ((await this.#change(demand.key, demand, 'return')) === null) await this.options.local.decrement(demand);
  }

  /**
   * Even an empty bucket is full after `refillMs`. One that says a later time was written before the clock was set
   * back: it is stored as empty, and fills from now on.
   */
  async #peekAll(demands: readonly Demand[]): Promise<BucketRecord[] | null> {
    if (this.#isPaused()) return null;
    try {
      const kv = await this.#open();
      const states = await Promise.all(demands.map(({ key }) => read(kv, key)));
      const nowMs = await this.options.now(kv);
      await Promise.all(
        demands.map(async ({ key, refillMs }, at) => {
          const { fullAtMs = nowMs, revision = 0 } = states[at] ?? {};
          const latestMs = nowMs + refillMs;
          if (fullAtMs > latestMs) await putIfUnchanged(kv, key, String(latestMs), revision);
        }),
      );
      return demands.map((demand, at) => peeked(states[at]?.fullAtMs, demand, nowMs));
    } catch (error) {
      return this.#pause(error);
    }
  }

  /** The bucket after the change; null where the process must count for itself. */
  #change(key: string, size: BucketSize, change: Waiting['change']): Promise<BucketRecord | null> {
    if (this.#isPaused()) return Promise.resolve(null);
    return new Promise((settle) => {
      const queue = this.#waiting.get(key);
      if (queue) {
        queue.push({ size, change, settle });
        return;
      }
      this.#waiting.set(key, [{ size, change, settle }]);
      void this.#work(key);
    });
  }

  /** Serves all that wait for one bucket until none is left. */
  async #work(key: string): Promise<void> {
    for (let batch = this.#take(key); batch.length > 0; batch = this.#take(key)) {
      const records = this.#isPaused()
        ? null
        : await this.#apply(key, batch).catch((error: unknown) => this.#pause(error));
      batch.forEach(({ settle }, index) => settle(records?.[index] ?? null));
    }
    this.#waiting.delete(key);
  }

  #take(key: string): Waiting[] {
    return this.#waiting.get(key)?.splice(0) ?? [];
  }

  /**
   * The records after the changes; null where other replicas were faster for as long as it may take: other buckets stay
   * shared.
   */
  async #apply(key: string, batch: readonly Waiting[]): Promise<BucketRecord[] | null> {
    const kv = await this.#open();
    // Twice a minute this measures the clock, by six questions. Between a read and its write they would give another
    // replica the time to change the bucket.
    await this.options.now(kv);
    const startedMs = performance.now();
    const isInTime = (times: number) => performance.now() - startedMs < times * this.#answerWithinMs;
    for (let tries = 1; isInTime(tries <= leastTries ? timesForLeastTries : 1); tries += 1) {
      const { revision, fullAtMs: before } = await read(kv, key);
      const { records, fullAtMs } = applied(batch, before, await this.options.now(kv));
      // A refused request changes nothing, so a flood of them costs the store only reads. The first one after the clock
      // was set back does: without it the bucket would be locked until the time before comes again.
      if (fullAtMs === before || (await putIfUnchanged(kv, key, String(fullAtMs), revision))) return records;
      await delay(Math.random() * longestDelayMs);
    }
    this.#warnings.log('contention', {
      message:
        'Other gateways were always faster to change the bucket of a rate limit; this one counts some requests by itself, so a caller may send more than the limit',
    });
    return null;
  }

  #open(): Promise<KV> {
    const connection = this.options.connection();
    if (!connection) return Promise.reject(new Error('NATS is not connected'));
    if (this.#store?.connection !== connection) {
      this.#store = { connection, kv: this.#create(jetstream(connection, { timeout: this.#answerWithinMs })) };
    }
    return this.#store.kv;
  }

  /**
   * The client takes a store that is there as it is. If its entries live too short for the limits of this process, they
   * live longer from now on; they are never made to live shorter, since another replica may need it. Of two that make
   * different ones live longer at once, the last wins until the next connects.
   */
  async #create(client: JetStreamClient): Promise<KV> {
    const ttl = Math.max(60_000, 2 * this.options.longestRefillMs);
    const kv = await new Kvm(client).create(limitsBucket, { history: 1, ttl, storage: 'memory', allow_direct: false });
    const { streamInfo, ttl: present } = await kv.status();
    // 0 is without end.
    if (present > 0 && present < ttl) {
      const { streams } = await client.jetstreamManager(false);
      await streams.update(streamInfo.config.name, { max_age: nanos(ttl) });
    }
    return kv;
  }

  #isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  #pause(error: unknown): null {
    // A cause that takes the place of another is told at once. Its message may name the bucket, and callers make those.
    const { name, code } = error as JetStreamApiError;
    this.#warnings.log(`failure ${name} ${code}`, {
      message: `Shared rate limits failed; this gateway counts by itself for ${pauseMs} ms: ${String(error)}`,
    });
    this.#pausedUntilMs = performance.now() + pauseMs;
    this.#store = undefined;
    return null;
  }
}

/** The changes of a batch, one after the other. */
function applied(
  batch: readonly Waiting[],
  before: number | undefined,
  nowMs: number,
): { records: BucketRecord[]; fullAtMs: number } {
  let fullAtMs = before ?? nowMs;
  const records = batch.map(({ size, change }) => {
    if (change === 'return') {
      fullAtMs = returnToken(fullAtMs, size);
      return peeked(fullAtMs, size, nowMs);
    }
    const taken = incremented(fullAtMs, size, nowMs);
    fullAtMs = taken.fullAtMs;
    return taken.record;
  });
  return { records, fullAtMs };
}

/** The store's name for a bucket: the bucket's own key may hold characters that the store refuses. */
function entryOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

async function read(kv: KV, key: string): Promise<{ fullAtMs: number | undefined; revision: number }> {
  const entry = await kv.get(entryOf(key));
  return { fullAtMs: entry?.operation === 'PUT' ? Number(entry.string()) : undefined, revision: entry?.revision ?? 0 };
}

/** False where another replica was faster. */
async function putIfUnchanged(kv: KV, key: string, value: string, revision: number): Promise<boolean> {
  try {
    await kv.put(entryOf(key), value, { previousSeq: revision });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence) return false;
    throw error;
  }
}
