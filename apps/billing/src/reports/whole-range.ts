import type { Pace } from '@atoll/waiting';
import type { Grid } from './grid.js';
import type { QuantityChange } from './quantity-changes.js';
import { costDenominator, type RatedUsage } from './rated-usage.js';

/** The prices of a SKU over a grid, and what one unit comes to from the start of the grid up to each of its bounds. */
export interface PriceSums {
  /** The price of each interval. */
  readonly prices: readonly (bigint | undefined)[];
  /** Prices × milliseconds. */
  readonly costsNano: readonly bigint[];
  /** Milliseconds without a price. */
  readonly unpricedMs: readonly number[];
}

export async function sumPrices(
  { lengthsMs }: Grid,
  prices: readonly (bigint | undefined)[],
  pace: Pace,
): Promise<PriceSums> {
  const costsNano = [0n];
  const unpricedMs = [0];
  for (const [interval, lengthMs] of lengthsMs.entries()) {
    const priceNano = prices[interval];
    costsNano.push((costsNano[interval] ?? 0n) + (priceNano ?? 0n) * BigInt(lengthMs));
    unpricedMs.push((unpricedMs[interval] ?? 0) + (priceNano === undefined ? lengthMs : 0));
    if (pace.isFull()) await pace.turn();
  }
  return { prices, costsNano, unpricedMs };
}

/** As `rate`, of a grid of one bucket. It takes as long as there are changes of the quantity, not of prices. */
export async function rateWhole(
  changes: readonly QuantityChange[],
  { bounds, lengthsMs }: Grid,
  { prices, costsNano, unpricedMs }: PriceSums,
  pace: Pace,
): Promise<RatedUsage> {
  let [heldNano, costNano, unpricedNano, quantityNano] = [0n, 0n, 0n, 0n];
  let from = 0;
  const holdUpTo = (interval: number) => {
    heldNano += quantityNano * BigInt((bounds[interval] ?? 0) - (bounds[from] ?? 0));
    costNano += quantityNano * ((costsNano[interval] ?? 0n) - (costsNano[from] ?? 0n));
    unpricedNano += quantityNano * BigInt((unpricedMs[interval] ?? 0) - (unpricedMs[from] ?? 0));
  };
  for (const { interval, deltaNano, momentNano } of changes) {
    holdUpTo(interval);
    quantityNano += deltaNano;
    const held = quantityNano * BigInt(lengthsMs[interval] ?? 0) - momentNano;
    const priceNano = prices[interval];
    heldNano += held;
    if (priceNano === undefined) unpricedNano += held;
    else costNano += held * priceNano;
    from = interval + 1;
    if (pace.isFull()) await pace.turn();
  }
  holdUpTo(lengthsMs.length);
  const whole = costNano / costDenominator;
  // Exact as a number: it is below the denominator.
  const rests = Float64Array.of(Number(costNano - whole * costDenominator));
  return { wholes: [whole], rests, heldNano: [heldNano], unpricedNano };
}
