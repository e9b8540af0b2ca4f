import { prices } from '@atoll/contracts';
import { Statements, Transactions } from '@atoll/database';
import { FirstSnapshot, type SnapshotPage } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { KnownPrices } from './known-prices.js';

/** For a page; a stop waits no longer. */
const deadlineMs = 5_000;
const limit = 100;

/** Fetches all prices from billing, for a service that starts beside prices that are older than it. What is not known yet is shown as unpriced. */
@Injectable()
export class PriceSnapshot extends FirstSnapshot {
  private page = 1;

  constructor(
    private readonly known: KnownPrices,
    statements: Statements,
    transactions: Transactions,
    private readonly rpc: Rpc,
  ) {
    super('price_snapshot', statements, transactions);
  }

  protected async nextPage(): Promise<SnapshotPage | undefined> {
    const { data } = await this.rpc.call(prices.list, { page: this.page, limit }, systemContext('gpuaas', { deadlineMs }));
    if (data.length === 0) return undefined;
    return {
      write: async (manager) => {
        for (const price of data) await this.known.apply(manager, price);
      },
      taken: () => (this.page += 1),
    };
  }
}
