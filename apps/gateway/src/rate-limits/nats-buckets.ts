import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { JetStreamApiCodes, JetStreamApiError, jetstream } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { toRecord, type BucketRecord, type Buckets } from './bucket-record.js';
import { peekToken, takeToken, type BucketSize } from './token-bucket.js';

export interface NatsBucketsOptions {
  /** The connection while it stands. */
  connection: () => NatsConnection | undefined;
  /** Used while NATS is away: a limit that cannot be shared still holds in each process. */
  local: Buckets;
  now: () => number;
  /** Buckets that nobody touched for so long are full and forgotten. */
  longestRefillMs: number;
}

interface Waiting {
  ttl: number;
  limit: number;
  settle: (record: BucketRecord | null) => void;
}

const bucketName = 'atoll_rate_limits';
const answerWithinMs = 300;
const attempts = 8;
/** After a failure the store is left alone for a moment, so that not every request waits for it. */
const pauseMs = 1_000;

/**
 * Token buckets that all replicas of the gateway share, in a JetStream key-value bucket. Each change compares and sets, so two replicas
 * never grant the same token; requests of one process for one bucket go in one change.
 */
export class NatsBuckets implements Buckets {
  readonly #logger = new Logger(NatsBuckets.name);
  readonly #waiting = new Map<string, Waiting[]>();
  #store: { connection: NatsConnection; kv: Promise<KV> } | undefined;
  #pausedUntilMs = 0;

  constructor(private readonly options: NatsBucketsOptions) {}

  async increment(key: string, ttl: number, limit: number, blockDuration: number, name: string): Promise<BucketRecord> {
    const shared = this.#isPaused() ? null : await this.#enqueue(key, ttl, limit);
    return shared ?? this.options.local.increment(key, ttl, limit, blockDuration, name);
  }

  async peek(key: string, ttl: number, limit: number): Promise<BucketRecord> {
    const size = { capacity: limit, refillMs: ttl };
    const look = async () => {
      const { fullAtMs } = await read(await this.#open(), key);
      const nowMs = this.options.now();
      return toRecord(peekToken(fullAtMs, size, nowMs), size, nowMs);
    };
    const shared = this.#isPaused() ? null : await look().catch((error: unknown) => this.#pause(error));
    return shared ?? this.options.local.peek(key, ttl, limit);
  }

  #enqueue(key: string, ttl: number, limit: number): Promise<BucketRecord | null> {
    return new Promise((settle) => {
      const queue = this.#waiting.get(key);
      if (queue) {
        queue.push({ ttl, limit, settle });
        return;
      }
      this.#waiting.set(key, [{ ttl, limit, settle }]);
      void this.#work(key);
    });
  }

  /** Serves all who wait for one bucket until none is left. */
  async #work(key: string): Promise<void> {
    for (let batch = this.#take(key); batch.length > 0; batch = this.#take(key)) {
      const records = this.#isPaused() ? null : await this.#change(key, batch).catch((error: unknown) => this.#pause(error));
      batch.forEach(({ settle }, index) => settle(records?.[index] ?? null));
    }
    this.#waiting.delete(key);
  }

  #take(key: string): Waiting[] {
    return this.#waiting.get(key)?.splice(0) ?? [];
  }

  async #change(key: string, batch: readonly Waiting[]): Promise<BucketRecord[]> {
    const kv = await this.#open();
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const { revision, ...found } = await read(kv, key);
      const nowMs = this.options.now();
      let { fullAtMs } = found;
      const records = batch.map(({ ttl, limit }) => {
        const size: BucketSize = { capacity: limit, refillMs: ttl };
        const taken = takeToken(fullAtMs, size, nowMs);
        fullAtMs = taken.fullAtMs;
        return toRecord(taken, size, nowMs);
      });
      // A refused request changes nothing, so a flood of them costs the store only reads.
      if (records.every((record) => record.isBlocked) || (await putIfUnchanged(kv, key, String(fullAtMs), revision))) {
        return records;
      }
    }
    throw new Error(`a bucket changed under each of ${attempts} attempts`);
  }

  #open(): Promise<KV> {
    const connection = this.options.connection();
    if (!connection) return Promise.reject(new Error('NATS is not connected'));
    if (this.#store?.connection !== connection) {
      const manager = new Kvm(jetstream(connection, { timeout: answerWithinMs }));
      const kv = manager.create(bucketName, {
        history: 1,
        ttl: Math.max(60_000, 2 * this.options.longestRefillMs),
        storage: 'memory',
        allow_direct: false,
      });
      this.#store = { connection, kv };
    }
    return this.#store.kv;
  }

  #isPaused(): boolean {
    return Date.now() < this.#pausedUntilMs;
  }

  #pause(error: unknown): null {
    this.#logger.warn(`Rate limits are local for now: ${String(error)}`);
    this.#pausedUntilMs = Date.now() + pauseMs;
    this.#store = undefined;
    return null;
  }
}

/** Under which a bucket is kept: its own key may hold what the store takes for none. */
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
