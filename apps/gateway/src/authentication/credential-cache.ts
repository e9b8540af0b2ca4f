import type { AddressRange, UserCaller } from '@atoll/contracts';

/** What the teams service said about a key. */
export interface Verified {
  caller: UserCaller;
  /** Epoch milliseconds; infinite for a key that does not expire. */
  expiresAtMs: number;
  /** Where it may be used; null for anywhere. Read once, not with each request. */
  ranges: readonly AddressRange[] | null;
}

interface Entry {
  verified: Verified;
  /** When its look-up began: what it says may be as old as that. */
  asOfMs: number;
}

/** A look-up that other requests for the same digest may join. */
interface LookUp {
  /** Counted in evictions. */
  startedAt: number;
  /** Epoch milliseconds. */
  asOfMs: number;
  found: Promise<Verified>;
}

export interface CredentialCacheOptions {
  /** The clock, in epoch milliseconds. */
  now: () => number;
  /** How long a look-up that has not ended may be joined. Who comes later begins another. */
  shareMs: number;
}

/** The longest that a lost revocation may go unnoticed. */
const maxAgeMs = 5_000;
const maxEntries = 10_000;
/** So many address ranges count as one entry. */
const rangesOfEntry = 16;

const weightOf = ({ verified: { ranges } }: Entry): number => 1 + (ranges?.length ?? 0) / rangesOfEntry;

/**
 * Verified keys by digest, for at most 5 s. Evicting a user takes effect at once: a request that asks afterwards gets
 * the state after it, never that of a look-up that began before. Look-ups of other users go on and stay shared. One
 * that may never be answered is shared with those who come soon: its failure is not that of those who come late.
 */
export class CredentialCache {
  /** In the order in which the look-ups ended, so that the oldest stand first, or nearly. */
  readonly #entries = new Map<string, Entry>();
  readonly #digestsOf = new Map<string, Set<string>>();
  readonly #lookUps = new Map<string, LookUp>();
  /** Total weight of all entries; an entry without ranges weighs 1. */
  #weight = 0;
  #running = 0;
  /** Evictions so far, and the last one of each user during the look-ups that run. */
  #evictions = 0;
  readonly #evictedAt = new Map<string, number>();
  /** Where that map would grow too long, every user counts as evicted. */
  #allEvictedAt = 0;

  constructor(
    private readonly lookUp: (digest: string) => Promise<Verified>,
    private readonly options: CredentialCacheOptions,
  ) {}

  get size(): number {
    return this.#entries.size;
  }

  /** What is known without a look-up. */
  fresh(digest: string): Verified | undefined {
    const entry = this.#entries.get(digest);
    return entry && this.#isFresh(entry) ? entry.verified : undefined;
  }

  /** Throws what the look-up throws; failures are not cached. */
  async find(digest: string): Promise<Verified> {
    const askedAt = this.#evictions;
    for (;;) {
      const verified = this.fresh(digest);
      if (verified) return verified;
      const { startedAt, found } = this.#joinable(digest) ?? this.#start(digest);
      const result = await found;
      // A look-up that began before the last eviction is good for this request only if it was kept: not of that user.
      if (startedAt >= askedAt) return result;
    }
  }

  evict(userId: string): void {
    this.#evictions += 1;
    for (const digest of [...(this.#digestsOf.get(userId) ?? [])]) this.#forget(digest);
    if (this.#running === 0) return;
    if (this.#evictedAt.size >= maxEntries) {
      this.#evictedAt.clear();
      this.#allEvictedAt = this.#evictions;
    }
    this.#evictedAt.set(userId, this.#evictions);
  }

  #joinable(digest: string): LookUp | undefined {
    const lookUp = this.#lookUps.get(digest);
    return lookUp && this.#isWithin(this.options.shareMs, lookUp) ? lookUp : undefined;
  }

  #start(digest: string): LookUp {
    const [startedAt, asOfMs] = [this.#evictions, this.options.now()];
    const started = { startedAt, asOfMs, found: this.#run(digest, startedAt, asOfMs) };
    this.#lookUps.set(digest, started);
    const leave = (): void => {
      if (this.#lookUps.get(digest) === started) this.#lookUps.delete(digest);
    };
    started.found.then(leave, leave);
    return started;
  }

  async #run(digest: string, startedAt: number, asOfMs: number): Promise<Verified> {
    this.#running += 1;
    try {
      const verified = await this.lookUp(digest);
      const evictedAt = Math.max(this.#evictedAt.get(verified.caller.userId) ?? 0, this.#allEvictedAt);
      if (evictedAt <= startedAt) this.#keep(digest, { verified, asOfMs });
      return verified;
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#evictedAt.clear();
    }
  }

  #keep(digest: string, entry: Entry): void {
    this.#forget(digest);
    this.#entries.set(digest, entry);
    this.#weight += weightOf(entry);
    const { userId } = entry.verified.caller;
    const digests = this.#digestsOf.get(userId);
    if (digests) digests.add(digest);
    else this.#digestsOf.set(userId, new Set([digest]));
    for (const [oldest, kept] of this.#entries) {
      if (this.#isFresh(kept) && this.#weight <= maxEntries) break;
      this.#forget(oldest);
    }
  }

  #forget(digest: string): void {
    const entry = this.#entries.get(digest);
    if (!entry) return;
    this.#entries.delete(digest);
    this.#weight -= weightOf(entry);
    const { userId } = entry.verified.caller;
    const digests = this.#digestsOf.get(userId);
    digests?.delete(digest);
    if (digests?.size === 0) this.#digestsOf.delete(userId);
  }

  #isFresh(entry: Entry): boolean {
    return this.#isWithin(maxAgeMs, entry);
  }

  /** What is from the future is not: the clock was set back. */
  #isWithin(timeMs: number, { asOfMs }: Pick<Entry, 'asOfMs'>): boolean {
    const ageMs = this.options.now() - asOfMs;
    return ageMs >= 0 && ageMs < timeMs;
  }
}
