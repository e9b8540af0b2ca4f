import { priceChanged, type Price } from '@atoll/contracts/billing';
import { Statements } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

export interface KnownPrice {
  /** Per unit and hour, as decimal text. */
  readonly unit_price: string;
  /** ISO 4217, one per deployment; null where none of the prices is known with it. */
  readonly currency: string | null;
}

/** Prices as published by billing, to show with the pools that they apply to. */
@Injectable()
export class KnownPrices {
  constructor(private readonly statements: Statements) {}

  @OnEvent(priceChanged, { consumer: 'prices' })
  async onPriceChanged(price: Price, { manager }: EventDelivery): Promise<void> {
    await this.apply(manager, [price]);
  }

  /** Whatever the order prices come in, the end is the same. */
  async apply(manager: EntityManager, prices: readonly Price[]): Promise<void> {
    await manager.query(
      `INSERT INTO price (price_id, sku, team_id, valid_from, unit_price, currency, created_at)
       SELECT DISTINCT ON (sku, team_id, valid_from) *
       FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::timestamptz[])
         AS published (price_id, sku, team_id, valid_from, unit_price, currency, created_at)
       ORDER BY sku, team_id, valid_from, created_at DESC
       ON CONFLICT (sku, team_id, valid_from) DO UPDATE
         SET price_id = excluded.price_id, unit_price = excluded.unit_price, currency = excluded.currency,
           created_at = excluded.created_at
         WHERE price.created_at < excluded.created_at
           OR price.price_id = excluded.price_id AND price.currency IS NULL`,
      [
        prices.map(({ price_id }) => price_id),
        prices.map(({ sku }) => sku),
        prices.map(({ team_id }) => team_id),
        prices.map(({ valid_from }) => valid_from),
        prices.map(({ unit_price }) => unit_price),
        prices.map(({ currency }) => currency),
        prices.map(({ created_at }) => created_at),
      ],
    );
  }

  /**
   * What a unit of each SKU costs the team now: its own price before the general one. SKUs without a price are left
   * out.
   */
  async of(skus: readonly string[], teamId: string): Promise<Map<string, KnownPrice>> {
    const rows = await this.statements.query<KnownPrice & { sku: string }>(
      `SELECT DISTINCT ON (sku) sku, unit_price,
         coalesce(currency, (SELECT other.currency FROM price other WHERE other.currency IS NOT NULL LIMIT 1)) AS currency
       FROM price
       WHERE sku = ANY ($1) AND (team_id IS NULL OR team_id = $2) AND valid_from <= now()
       ORDER BY sku, team_id IS NULL, valid_from DESC`,
      [skus, teamId],
    );
    return new Map(rows.map(({ sku, ...price }) => [sku, price]));
  }
}
