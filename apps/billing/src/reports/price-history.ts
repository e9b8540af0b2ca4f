import { nanoOf } from '../money/amounts.js';
import type { Pace } from '@atoll/waiting';
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
 * What one unit of a SKU costs a team per hour, as it changes over time. Each price holds until the next; the team's
 * own go before the general ones from the first of them on, for ever.
 */
export class PriceHistory {
  private constructor(private readonly steps: readonly { fromMs: number; priceNano: bigint }[]) {}

  /** Of the prices of one SKU, in any order. */
  static async of(prices: readonly PriceRow[], pace: Pace): Promise<PriceHistory> {
    let ownFromMs = Infinity;
    for (const { isOwn, fromMs } of prices) if (isOwn && fromMs < ownFromMs) ownFromMs = fromMs;
    const inForce = prices.filter(({ isOwn, fromMs }) => isOwn || fromMs < ownFromMs);
    const steps = await pace.map(inForce, ({ fromMs, unitPrice }) => ({ fromMs, priceNano: nanoOf(unitPrice) }));
    return new PriceHistory(await pace.toSorted(steps, (a, b) => a.fromMs - b.fromMs));
  }

  /** Where a price begins. */
  get changesMs(): number[] {
    return this.steps.map(({ fromMs }) => fromMs);
  }

  /** Where the first price begins; Infinity where there is none. */
  get beginsMs(): number {
    return this.steps[0]?.fromMs ?? Infinity;
  }

  /** The price in each interval of a grid that is cut at this history's changes; undefined where there is none yet. */
  async over({ bounds }: Grid, pace: Pace): Promise<(bigint | undefined)[]> {
    let step = -1;
    return pace.map(bounds.slice(0, -1), (startMs) => {
      while ((this.steps[step + 1]?.fromMs ?? Infinity) <= startMs) step += 1;
      return this.steps[step]?.priceNano;
    });
  }
}
