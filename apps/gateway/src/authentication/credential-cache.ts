import type { UserCaller } from '@atoll/contracts';

/** What the teams service said about a key. */
export interface Verified {
  caller: UserCaller;
  /** Epoch milliseconds; infinite for a key that does not expire. */
  expiresAtMs: number;
  ipWhitelist: string;
}

interface Entry {
  verified: Verified;
  /** When its look-up began: what it says may be as old as that. */
  asOfMs: number;
}

/** The longest that a lost revocation may go unnoticed. */
const maxAgeMs = 5_000;
const maxEntries = 10_000;

/**
 * Verified keys by digest, for at most 5 s. Evicting a user takes effect at once: whoever asks afterwards is told the state after it,
 * never that of a look-up which began before.
 */
export class CredentialCache {
  /** In the order in which the look-ups ended, so that the oldest stand first, or nearly. */
  readonly #entries = new Map<string, Entry>();
  readonly #digestsOf = new Map<string, Set<string>>();
  /** Look-ups that a request may still join. */
  readonly #joinable = new Map<string, Promise<Verified>>();
  #running = 0;
  /** Evictions so far, and the last one of each user that a running look-up may know nothing of. */
  #evictions = 0;
  readonly #evictedAt = new Map<string, number>();
  /** Where that becomes too long a list, everybody counts as evicted. */
  #allEvictedAt = 0;

  constructor(
    private readonly lookUp: (digest: string) => Promise<Verified>,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.#entries.size;
  }

  /** Throws what the look-up throws; that is not kept. */
  find(digest: string): Promise<Verified> {
    const entry = this.#entries.get(digest);
    if (entry && this.#isFresh(entry)) return Promise.resolve(entry.verified);
    const running = this.#joinable.get(digest);
    if (running) return running;
    const started = this.#start(digest);
    this.#joinable.set(digest, started);
    const leave = (): void => {
      if (this.#joinable.get(digest) === started) this.#joinable.delete(digest);
    };
    started.then(leave, leave);
    return started;
  }

  evict(userId: string): void {
    this.#evictions += 1;
    this.#joinable.clear();
    for (const digest of this.#digestsOf.get(userId) ?? []) this.#entries.delete(digest);
    this.#digestsOf.delete(userId);
    if (this.#running === 0) return;
    if (this.#evictedAt.size >= maxEntries) {
      this.#evictedAt.clear();
      this.#allEvictedAt = this.#evictions;
    }
    this.#evictedAt.set(userId, this.#evictions);
  }

  async #start(digest: string): Promise<Verified> {
    const asOfMs = this.now();
    const evictionsBefore = this.#evictions;
    this.#running += 1;
    try {
      const verified = await this.lookUp(digest);
      const evictedAt = this.#evictedAt.get(verified.caller.userId) ?? this.#allEvictedAt;
      if (evictedAt <= evictionsBefore) this.#keep(digest, { verified, asOfMs });
      return verified;
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#evictedAt.clear();
    }
  }

  #keep(digest: string, entry: Entry): void {
    this.#forget(digest);
    this.#entries.set(digest, entry);
    const { userId } = entry.verified.caller;
    const digests = this.#digestsOf.get(userId);
    if (digests) digests.add(digest);
    else this.#digestsOf.set(userId, new Set([digest]));
    for (const [oldest, kept] of this.#entries) {
      if (this.#isFresh(kept) && this.#entries.size <= maxEntries) break;
      this.#forget(oldest);
    }
  }

  #forget(digest: string): void {
    const entry = this.#entries.get(digest);
    if (!entry) return;
    this.#entries.delete(digest);
    const { userId } = entry.verified.caller;
    const digests = this.#digestsOf.get(userId);
    digests?.delete(digest);
    if (digests?.size === 0) this.#digestsOf.delete(userId);
  }

  /** An entry from the future is not fresh either: the clock was set back. */
  #isFresh({ asOfMs }: Entry): boolean {
    const ageMs = this.now() - asOfMs;
    return ageMs >= 0 && ageMs < maxAgeMs;
  }
}
