import { IntersectionType } from '@nestjs/swagger';
import { contract, event, operation } from '../contract.js';
import { DecimalText, Flag, Instant, ListOf, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { IncludeEnded, Nothing, PageFromOne, PageOf } from '../page.js';

/** What has a price: `gpu.A100-80GB.1g.10gb`, `storage.shared`. */
export const aSku = {
  max: 200,
  pattern: /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
  patternHint: 'letters, digits, dots, hyphens and underscores, such as gpu.A100-80GB.1g.10gb',
  example: 'gpu.A100-80GB.1g.10gb',
};

class PriceTerms {
  @Text(aSku)
  sku!: string;

  @Text({ max: 64, example: 'vgpu', description: 'Unit of the SKU, the same for all of its prices.' })
  unit!: string;

  @DecimalText({
    max: 1_000_000_000,
    example: '1.25',
    description: 'Price per unit and hour, 0 to 1000000000 with at most 9 decimals.',
  })
  unit_price!: string;

  @Instant({
    decimals: 'millisecondsThenZeros',
    example: '2100-01-01T00:00:00Z',
    description: 'Instant from which the price applies, to the millisecond, until the next one of its SKU (and team).',
  })
  valid_from!: string;
}

export class CreatePrice extends PriceTerms {
  @Uuid({ optional: true, description: 'Id of the team whose own price it is; for every team if left out.' })
  team_id?: string;

  @Flag({ optional: true, description: 'Whether the price may start in the past, or replace one with the same start.' })
  force?: boolean;
}

export class Price extends PriceTerms {
  @Uuid()
  price_id!: string;

  @Uuid({ nullable: true, description: 'Id of the team whose own price it is; null for every team.' })
  team_id!: string | null;

  @Text({ max: 3, example: 'USD' })
  currency!: string;

  @Instant()
  created_at!: string;

  @Instant({
    nullable: true,
    description: 'Instant at which another price with the same start replaced it; null while it applies.',
  })
  replaced_at!: string | null;
}

/** A price has ended when another took its place. */
export class ListPrices extends IntersectionType(PageFromOne, IncludeEnded) {
  @Text({ ...aSku, optional: true })
  sku?: string;

  @Uuid({ optional: true, description: 'Id of the team whose own prices to list.' })
  team_id?: string;
}

export class PricePage extends PageOf(() => Price) {}

export class Currency {
  @Text({ max: 3, example: 'USD', description: 'Currency (ISO 4217), one per deployment.' })
  currency!: string;
}

/** For every caller. */
export const currencies = contract('billing.currency', {
  read: operation(Nothing, Currency),
});

export const prices = contract('billing.prices', {
  create: operation(CreatePrice, Price),
  list: operation(ListPrices, PricePage),
});

/** A price was added, or took the place of another with the same SKU, team and start: the later `created_at` holds. */
export const priceChanged = event('billing.price_changed', Price);

/** Where the previous page ended; left out for the first page. */
export class PricesAfter {
  @Uuid({ optional: true })
  price_id?: string;
}

export class PricesInForce {
  @ListOf(() => Price, { max: 500 })
  prices!: Price[];
}

/** Prices for the projections of other services that start without any. For services alone. */
export const priceDirectory = contract('billing.directory', {
  /**
   * The next 500 prices in force, in the order of their ids. Empty after the last. A price that is added or replaced
   * meanwhile may be missing, and `priceChanged` tells of it; each that was in force all the time is there.
   */
  page: operation(PricesAfter, PricesInForce),
});
