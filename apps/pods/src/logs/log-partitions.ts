import type { ConnectionChanges, Transactions } from '@atoll/database';

const dayMs = 86_400_000;

/** Partitions of `log_line`: one a day (UTC), made before its first line and dropped when its last line is too old. */
export class LogPartitions {
  /** Days since 1970 whose partition is known to exist, on the server that all connections lead to. */
  readonly #known = new Set<number>();
  /** The database's clock less `performance.now()`. */
  #aheadOfUsMs: number | undefined;

  constructor(
    private readonly transactions: Transactions,
    connections: ConnectionChanges,
    private readonly retentionDays: number,
    /** By the clock of the database: a replica whose own is ahead would drop what all others keep. */
    private readonly nowMs: () => Promise<number>,
  ) {
    connections.clear(this.#known);
  }

  /** The oldest instant, epoch milliseconds, of which lines are kept: the start of a day. */
  async oldestMs(): Promise<number> {
    const aheadMs = this.#aheadOfUsMs;
    return this.#oldestAt(aheadMs === undefined ? await this.#compareClocks() : performance.now() + aheadMs);
  }

  /** Makes the partitions of lines at these instants, epoch milliseconds, where they are missing. */
  async ensure(instantsMs: readonly number[]): Promise<void> {
    for (const day of this.#missing(instantsMs)) {
      await this.transactions.run((manager) =>
        manager.query('SELECT make_log_partition($1::date)', [dateOf(day * dayMs)]),
      );
      this.#known.add(day);
    }
  }

  /** Whether the partitions of lines at these instants are known to exist. */
  has(instantsMs: readonly number[]): boolean {
    return this.#missing(instantsMs).length === 0;
  }

  /** Drops what is older than the retention, and makes the partition of tomorrow. */
  async maintain(): Promise<void> {
    const nowMs = await this.#compareClocks();
    await this.ensure([nowMs, nowMs + dayMs]);
    const oldestMs = this.#oldestAt(nowMs);
    for (const day of this.#known) if (day * dayMs < oldestMs) this.#known.delete(day);
    await this.transactions.run(async (manager) => {
      // Writers wait behind a drop that waits for readers: no longer than this. The next maintenance tries again.
      await manager.query(`SET LOCAL lock_timeout = '500ms'`);
      await manager.query('SELECT drop_log_partitions($1::date)', [dateOf(oldestMs)]);
    });
  }

  async #compareClocks(): Promise<number> {
    const nowMs = await this.nowMs();
    this.#aheadOfUsMs = nowMs - performance.now();
    return nowMs;
  }

  #oldestAt(nowMs: number): number {
    return (Math.floor(nowMs / dayMs) - this.retentionDays) * dayMs;
  }

  #missing(instantsMs: readonly number[]): number[] {
    const days = new Set(instantsMs.map((ms) => Math.floor(ms / dayMs)));
    return [...days].filter((day) => !this.#known.has(day));
  }
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
