import { priceDirectory, type PricesAfter } from '@atoll/contracts/billing';
import { Statements, Transactions } from '@atoll/database';
import { FirstSnapshot, type SnapshotPage } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { KnownPrices } from './known-prices.js';

/** For a page; a stop waits no longer. */
const deadlineMs = 5_000;

/**
 * Fetches all prices from billing, for a service that starts beside prices that are older than it. Until then they are
 * shown as unpriced.
 */
@Injectable()
export class PriceSnapshot extends FirstSnapshot {
  private after: PricesAfter = {};

  constructor(
    private readonly known: KnownPrices,
    statements: Statements,
    transactions: Transactions,
    private readonly rpc: Rpc,
  ) {
    super('price_directory_snapshot', statements, transactions);
  }

  protected async nextPage(): Promise<SnapshotPage | undefined> {
    const { prices } = await this.rpc.call(priceDirectory.page, this.after, systemContext('gpuaas', { deadlineMs }));
    const last = prices.at(-1);
    if (!last) return undefined;
    return {
      write: (manager) => this.known.apply(manager, prices),
      taken: () => (this.after = { price_id: last.price_id }),
    };
  }
}
