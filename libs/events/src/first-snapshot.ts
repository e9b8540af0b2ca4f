import { setTimeout as delay } from 'node:timers/promises';
import { isOutage, type Statements, type Transactions } from '@atoll/database';
import { messageOf } from '@atoll/errors';
import { backOffMs } from '@atoll/waiting';
import { Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

const backOff = { firstMs: 100, maxMs: 30_000 };

export interface SnapshotPage {
  readonly write: (manager: EntityManager) => Promise<void>;
  /** It has been committed: the next one is asked for. */
  readonly taken: () => void;
}

/**
 * What a projection of another service's events lacks where that service is older than it: fetched from its owner once,
 * page by page, while events are followed. Delays no start, and tries again until the owner is there.
 */
export abstract class FirstSnapshot implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(this.constructor.name);
  private readonly stopping = new AbortController();
  private fetched: Promise<void> = Promise.resolve();

  /** `table` has a column `completed_at`, and a row once the snapshot has been taken. */
  constructor(
    private readonly table: string,
    private readonly statements: Statements,
    private readonly transactions: Transactions,
  ) {}

  /** The next page, from where the last one ended; undefined: there are no more. */
  protected abstract nextPage(): Promise<SnapshotPage | undefined>;

  onApplicationBootstrap(): void {
    this.fetched = this.fetch();
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    await this.fetched;
  }

  private async fetch(): Promise<void> {
    for (let failures = 1; !this.stopping.signal.aborted; failures += 1) {
      try {
        const done = await this.statements.query(`SELECT FROM ${this.table}`, []);
        if (done.length === 0) await this.fetchAll();
        return;
      } catch (error) {
        this.tell(error);
        // Between two tries nothing is under way that would have to be waited for.
        const waitMs = backOffMs(backOff, failures);
        await delay(waitMs, undefined, { signal: this.stopping.signal, ref: false }).catch(() => undefined);
      }
    }
  }

  private async fetchAll(): Promise<void> {
    for (let page = await this.nextPage(); page; page = await this.nextPage()) {
      const { write } = page;
      await this.transactions.run(write);
      page.taken();
      if (this.stopping.signal.aborted) return;
    }
    await this.transactions.run(async (manager) => {
      await manager.query(`INSERT INTO ${this.table} (completed_at) VALUES (now()) ON CONFLICT DO NOTHING`);
    });
  }

  /** That the owner starts later is nothing to worry about. */
  private tell(error: unknown): void {
    this.logger[isOutage(error) ? 'debug' : 'warn'](`Cannot fetch the first snapshot; retrying: ${messageOf(error)}`);
  }
}
