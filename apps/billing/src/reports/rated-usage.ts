import { nanoPerUnit, numberOf } from '../money/amounts.js';
import { divideHalfUp } from '../money/rounding.js';
import type { Grid } from './grid.js';
import type { QuantityChanges } from './usage-query.js';

const msPerHour = 3_600_000n;
/** Quantities are in 10^-9 units, prices in 10^-9 an hour, and time in ms: so many of their products are 10^-9 of the currency. */
export const costDenominator = msPerHour * nanoPerUnit;

/** Costs, exactly: the n-th is `wholes[n] + rests[n] / costDenominator` in 10^-9 of the currency, the rest being below the denominator. */
export interface ExactCosts {
  readonly wholes: bigint[];
  readonly rests: bigint[];
}

/** What was held and what it costs, by bucket. */
export interface Rated extends ExactCosts {
  /** 10^-9 units × milliseconds. */
  readonly heldNano: bigint[];
}

export interface RatedUsage extends Rated {
  /** 10^-9 units × milliseconds that had no price. */
  readonly unpricedNano: bigint;
}

/** Nothing, so many times. */
export function noCosts(count: number): ExactCosts {
  return { wholes: new Array<bigint>(count).fill(0n), rests: new Array<bigint>(count).fill(0n) };
}

/** Adds to the n-th cost. */
export function addCost({ wholes, rests }: ExactCosts, n: number, whole: bigint, rest: bigint): void {
  const sum = (rests[n] ?? 0n) + rest;
  const isCarried = sum >= costDenominator;
  wholes[n] = (wholes[n] ?? 0n) + whole + (isCarried ? 1n : 0n);
  rests[n] = isCarried ? sum - costDenominator : sum;
}

/** All of the costs together, as one. */
export function totalOf({ wholes, rests }: ExactCosts): { whole: bigint; rest: bigint } {
  let [whole, rest] = [0n, 0n];
  for (const one of wholes) whole += one;
  for (const one of rests) rest += one;
  return { whole: whole + rest / costDenominator, rest: rest % costDenominator };
}

/**
 * Adds up the changes of a quantity over a grid, and multiplies by `prices`, which has the price of each interval.
 * In most intervals nothing changes, and what they come to is that of the interval before.
 */
export function rate({ deltasNano, momentsNano }: QuantityChanges, grid: Grid, prices: readonly (bigint | undefined)[]): RatedUsage {
  const costs = noCosts(grid.bucketCount);
  const heldNano = new Array<bigint>(grid.bucketCount).fill(0n);
  let unpricedNano = 0n;
  let quantityNano = 0n;
  let [held, whole, rest] = [0n, 0n, 0n];
  let steadyMs: bigint | undefined;
  let steadyPriceNano: bigint | undefined;
  for (let interval = 0; interval < grid.lengthsMs.length; interval += 1) {
    const lengthMs = grid.lengthsMs[interval] ?? 0n;
    const priceNano = prices[interval];
    const deltaNano = deltasNano[interval];
    if (deltaNano !== undefined || lengthMs !== steadyMs || priceNano !== steadyPriceNano) {
      quantityNano += deltaNano ?? 0n;
      held = quantityNano * lengthMs - (momentsNano[interval] ?? 0n);
      const costNano = held * (priceNano ?? 0n);
      whole = costNano / costDenominator;
      rest = costNano - whole * costDenominator;
      steadyMs = deltaNano === undefined ? lengthMs : undefined;
      steadyPriceNano = priceNano;
    }
    if (held === 0n) continue;
    const bucket = grid.buckets[interval] ?? 0;
    heldNano[bucket] = (heldNano[bucket] ?? 0n) + held;
    if (priceNano === undefined) unpricedNano += held;
    else addCost(costs, bucket, whole, rest);
  }
  return { ...costs, heldNano, unpricedNano };
}

/** 10^-9 units × hours, half up: what is shown of 10^-9 units × milliseconds. */
export function hoursNano(heldNano: bigint): bigint {
  return divideHalfUp(heldNano, msPerHour);
}

/** As a JSON number. */
export function unitHours(heldNano: bigint): number {
  return numberOf(hoursNano(heldNano));
}

/** Of all that was held. */
export function unitHoursOf(all: readonly Rated[]): number {
  let sumNano = 0n;
  for (const { heldNano } of all) for (const held of heldNano) sumNano += held;
  return unitHours(sumNano);
}
