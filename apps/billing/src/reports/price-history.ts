import { nanoOf } from '../money/amounts.js';
import type { Grid } from './grid.js';

/** A price in force, for every team or for the report's alone. */
export interface PriceRow {
  sku: string;
  isOwn: boolean;
  fromMs: number;
  /** Per unit and hour, as decimal text. */
  unitPrice: string;
}

/**
 * What one unit of a SKU costs a team per hour, as it changes over time. Each price holds until the next; the team's own go before the general
 * ones from the first of them on, for ever.
 */
export class PriceHistory {
  private constructor(private readonly steps: readonly { fromMs: number; priceNano: bigint }[]) {}

  /** Of the prices of one SKU, in any order. */
  static of(prices: readonly PriceRow[]): PriceHistory {
    const own = prices.filter(({ isOwn }) => isOwn);
    const ownFromMs = Math.min(...own.map(({ fromMs }) => fromMs));
    const general = prices.filter(({ isOwn, fromMs }) => !isOwn && fromMs < ownFromMs);
    const steps = [...general, ...own].map(({ fromMs, unitPrice }) => ({ fromMs, priceNano: nanoOf(unitPrice) }));
    return new PriceHistory(steps.sort((a, b) => a.fromMs - b.fromMs));
  }

  /** Where a price begins. */
  get changesMs(): number[] {
    return this.steps.map(({ fromMs }) => fromMs);
  }

  /** Whether there is time from `ms` on without a price. */
  isMissingAt(ms: number): boolean {
    const [first] = this.steps;
    return !first || first.fromMs > ms;
  }

  /** The price in each interval of a grid that is cut at this history's changes; undefined where there is none yet. */
  over({ bounds }: Grid): (bigint | undefined)[] {
    let step = -1;
    return bounds.slice(0, -1).map((startMs) => {
      while ((this.steps[step + 1]?.fromMs ?? Infinity) <= startMs) step += 1;
      return this.steps[step]?.priceNano;
    });
  }
}
