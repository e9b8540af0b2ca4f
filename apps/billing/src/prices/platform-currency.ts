import { onceAvailable, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BillingSettings } from '../billing-settings.js';

/**
 * The currency of all prices, which are stored as numbers alone: stored with the first price. Ends a start with another
 * one, which would show the same numbers in it.
 */
@Injectable()
export class PlatformCurrency implements OnModuleInit {
  constructor(
    private readonly transactions: Transactions,
    private readonly settings: BillingSettings,
  ) {}

  /** Prices of a release that did not store the currency are taken to be in that of the settings. */
  async onModuleInit(): Promise<void> {
    await onceAvailable(() =>
      this.transactions.run(async (manager) => {
        await manager.query(
          'INSERT INTO currency (code) SELECT $1 WHERE EXISTS (SELECT FROM price) ON CONFLICT DO NOTHING',
          [this.settings.currency],
        );
        await this.requireSame(manager);
      }),
    );
  }

  /** Before a price is added, in its transaction. Throws `conflict` where prices are in another currency by now. */
  async keep(manager: EntityManager): Promise<void> {
    await manager.query('INSERT INTO currency (code) VALUES ($1) ON CONFLICT DO NOTHING', [this.settings.currency]);
    await this.requireSame(manager);
  }

  private async requireSame(manager: EntityManager): Promise<void> {
    const [kept] = await manager.query<{ code: string }[]>('SELECT code FROM currency');
    if (!kept || kept.code === this.settings.currency) return;
    throw new AppError(
      'conflict',
      `ATOLL_CURRENCY is ${this.settings.currency}, but the prices of this platform are in ${kept.code}. Set ATOLL_CURRENCY=${kept.code}: the currency of a platform can be changed only before its first price.`,
    );
  }
}
