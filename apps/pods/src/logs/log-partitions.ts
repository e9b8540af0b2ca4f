import type { Transactions } from '@atoll/database';

const dayMs = 86_400_000;

/** Partitions of `log_line`: one a day (UTC), made before its first line and dropped when its last line is too old. */
export class LogPartitions {
  /** Days since 1970 whose partition is known to exist. */
  readonly #known = new Set<number>();

  constructor(
    private readonly transactions: Transactions,
    private readonly retentionDays: number,
    private readonly now: () => number,
  ) {}

  /** The oldest instant, epoch milliseconds, of which lines are kept: the start of a day. */
  oldestMs(): number {
    return (Math.floor(this.now() / dayMs) - this.retentionDays) * dayMs;
  }

  /** Makes the partitions of lines at these instants, epoch milliseconds, where they are missing. */
  async ensure(instantsMs: Iterable<number>): Promise<void> {
    const missing = new Set<number>();
    for (const ms of instantsMs) {
      const day = Math.floor(ms / dayMs);
      if (!this.#known.has(day)) missing.add(day);
    }
    for (const day of missing) {
      await this.transactions.run((manager) =>
        manager.query('SELECT make_log_partition($1::date)', [dateOf(day * dayMs)]),
      );
      this.#known.add(day);
    }
  }

  /** Drops what is older than the retention, and makes the partition of tomorrow. */
  async maintain(): Promise<void> {
    const nowMs = this.now();
    await this.ensure([nowMs, nowMs + dayMs]);
    const oldestMs = this.oldestMs();
    for (const day of this.#known) if (day * dayMs < oldestMs) this.#known.delete(day);
    await this.transactions.run(async (manager) => {
      // Writers wait behind a drop that waits for readers: no longer than this. The next maintenance tries again.
      await manager.query(`SET LOCAL lock_timeout = '500ms'`);
      await manager.query('SELECT drop_log_partitions($1::date)', [dateOf(oldestMs)]);
    });
  }
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
