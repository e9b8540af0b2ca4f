import { setTimeout as delay } from 'node:timers/promises';
import { prices } from '@atoll/contracts';
import { Statements, Transactions } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { KnownPrices } from './known-prices.js';

const longestWaitMs = 30_000;
const deadlineMs = 5_000;
const limit = 100;

/** Fetches all prices from billing, once, for a service that starts beside prices that are older than it. Events are followed meanwhile. */
@Injectable()
export class PriceSnapshot implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(PriceSnapshot.name);
  private readonly stop = new AbortController();
  private fetched: Promise<void> = Promise.resolve();

  constructor(
    private readonly known: KnownPrices,
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
  ) {}

  /** Delays no start: what is not known yet is shown as unpriced. */
  onApplicationBootstrap(): void {
    this.fetched = this.fetch();
  }

  async onModuleDestroy(): Promise<void> {
    this.stop.abort();
    await this.fetched;
  }

  private async fetch(): Promise<void> {
    for (let waitMs = 100; !this.stop.signal.aborted; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      try {
        const done = await this.statements.query('prices.snapshot', 'SELECT FROM price_snapshot', []);
        if (done.length === 0) await this.fetchAll();
        return;
      } catch (error) {
        this.logger.debug(`The prices could not be fetched yet: ${error instanceof Error ? error.message : String(error)}`);
        await delay(waitMs, undefined, { signal: this.stop.signal, ref: false }).catch(() => undefined);
      }
    }
  }

  private async fetchAll(): Promise<void> {
    for (let page = 1; !this.stop.signal.aborted; page += 1) {
      const { data } = await this.rpc.call(prices.list, { page, limit }, systemContext('gpuaas', { deadlineMs }));
      await this.transactions.run(async (manager) => {
        for (const price of data) await this.known.apply(manager, price);
        if (data.length < limit) await manager.query('INSERT INTO price_snapshot (completed_at) VALUES (now()) ON CONFLICT DO NOTHING');
      });
      if (data.length < limit) return;
    }
  }
}
