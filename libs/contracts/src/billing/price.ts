import { IntersectionType } from '@nestjs/swagger';
import { contract, event, operation } from '../contract.js';
import { DecimalText, Flag, Instant, ListOf, Nested, Text, Uuid } from '../fields.js';
import { IncludeEnded, PageFromOne, Pagination } from '../page.js';

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

  @Text({ max: 64, example: 'vgpu', description: 'What a unit is. One for all prices of a SKU.' })
  unit!: string;

  @DecimalText({ max: 1_000_000_000, example: '1.25', description: 'Per unit and hour.' })
  unit_price!: string;

  @Instant({ example: '2026-10-01T00:00:00Z', description: 'The price holds from here until the next one of its SKU (and team).' })
  valid_from!: string;
}

export class CreatePrice extends PriceTerms {
  @Uuid({ optional: true, description: 'A price for this team alone, which goes before the general one.' })
  team_id?: string;

  @Flag({ optional: true, description: 'Needed for a price that starts in the past, or takes the place of one with the same start.' })
  force?: boolean;
}

export class Price extends PriceTerms {
  @Uuid()
  price_id!: string;

  @Uuid({ nullable: true, description: 'null: for every team.' })
  team_id!: string | null;

  @Text({ max: 3, example: 'USD' })
  currency!: string;

  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'When another price with the same start took its place; null while it counts.' })
  replaced_at!: string | null;
}

/** A price has ended when another took its place. */
export class ListPrices extends IntersectionType(PageFromOne, IncludeEnded) {
  @Text({ ...aSku, optional: true })
  sku?: string;

  @Uuid({ optional: true, description: 'Prices of this team alone.' })
  team_id?: string;
}

export class PricePage {
  @ListOf(() => Price, { max: 100 })
  data!: Price[];

  @Nested(() => Pagination)
  pagination!: Pagination;
}

export const prices = contract('billing.prices', {
  create: operation(CreatePrice, Price),
  list: operation(ListPrices, PricePage),
});

/** A price was added, or took the place of another with the same SKU, team and start: the later `created_at` holds. */
export const priceChanged = event('billing.price_changed', Price);
