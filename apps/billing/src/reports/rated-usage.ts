import { decimalOf, nanoPerUnit, numberOf } from '../money/amounts.js';
import { divideHalfUp } from '../money/rounding.js';
import type { Pace } from '@atoll/waiting';
import type { Grid } from './grid.js';
import type { QuantityChanges } from './quantity-changes.js';

const msPerHour = 3_600_000n;
/**
 * Quantities are in 10^-9 units, prices in 10^-9 an hour, and time in ms: so many of their products are 10^-9 of the
 * currency.
 */
export const costDenominator = msPerHour * nanoPerUnit;
/** The same as a float: 3.6 × 10^15 is below 2^53, so that what is below it, and the sum of two such, is exact. */
const denominator = 3_600_000 * 1_000_000_000;

/**
 * Costs, exactly: the n-th is `wholes[n] + rests[n] / costDenominator` in 10^-9 of the currency, each rest whole and
 * below the denominator.
 */
export interface ExactCosts {
  readonly wholes: bigint[];
  readonly rests: Float64Array;
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
  return { wholes: new Array<bigint>(count).fill(0n), rests: new Float64Array(count) };
}

/**
 * Adds to the n-th cost. True where the rests came to more than the denominator, so that the whole is one more than
 * those added.
 */
export function addCost({ wholes, rests }: ExactCosts, n: number, whole: bigint, rest: number): boolean {
  const sum = (rests[n] ?? 0) + rest;
  const isCarried = sum >= denominator;
  wholes[n] = (wholes[n] ?? 0n) + (isCarried ? whole + 1n : whole);
  rests[n] = isCarried ? sum - denominator : sum;
  return isCarried;
}

/** All of the costs together, as one. */
export async function totalOf({ wholes, rests }: ExactCosts, pace: Pace): Promise<{ whole: bigint; rest: number }> {
  const total = noCosts(1);
  for (let n = 0; n < wholes.length; n += 1) {
    addCost(total, 0, wholes[n] ?? 0n, rests[n] ?? 0);
    if (pace.isFull()) await pace.turn();
  }
  return { whole: total.wholes[0] ?? 0n, rest: total.rests[0] ?? 0 };
}

/** A half and more. */
export function isHalf(rest: number): boolean {
  return 2 * rest >= denominator;
}

/**
 * Adds up the changes of a quantity over a grid, and multiplies by `prices`, which has the price of each interval.
 * In most intervals nothing changes, and what they come to is that of the interval before.
 */
export async function rate(
  { deltasNano, momentsNano }: QuantityChanges,
  grid: Grid,
  prices: readonly (bigint | undefined)[],
  pace: Pace,
): Promise<RatedUsage> {
  const costs = noCosts(grid.bucketCount);
  const heldNano = new Array<bigint>(grid.bucketCount).fill(0n);
  let unpricedNano = 0n;
  let quantityNano = 0n;
  let [held, whole, rest] = [0n, 0n, 0];
  let steadyMs: number | undefined;
  let steadyPriceNano: bigint | undefined;
  let lastBucket = -1;
  for (let interval = 0; interval < grid.lengthsMs.length; interval += 1) {
    if (pace.isFull()) await pace.turn();
    const lengthMs = grid.lengthsMs[interval] ?? 0;
    const priceNano = prices[interval];
    const deltaNano = deltasNano[interval];
    if (deltaNano !== undefined || lengthMs !== steadyMs || priceNano !== steadyPriceNano) {
      quantityNano += deltaNano ?? 0n;
      held = quantityNano * BigInt(lengthMs) - (momentsNano[interval] ?? 0n);
      const costNano = held * (priceNano ?? 0n);
      whole = costNano / costDenominator;
      // Exact as a number: it is below the denominator.
      rest = Number(costNano - whole * costDenominator);
      steadyMs = deltaNano === undefined ? lengthMs : undefined;
      steadyPriceNano = priceNano;
    }
    if (held === 0n) continue;
    const bucket = grid.buckets[interval] ?? 0;
    if (priceNano === undefined) unpricedNano += held;
    if (bucket === lastBucket) {
      heldNano[bucket] = (heldNano[bucket] ?? 0n) + held;
      addCost(costs, bucket, whole, rest);
    } else {
      heldNano[bucket] = held;
      costs.wholes[bucket] = whole;
      costs.rests[bucket] = rest;
    }
    lastBucket = bucket;
  }
  return { ...costs, heldNano, unpricedNano };
}

const halfHourMs = msPerHour / 2n;

/** 10^-9 units × hours, half up: what is shown of 10^-9 units × milliseconds, which are not negative. */
export function hoursNano(heldNano: bigint): bigint {
  return (heldNano + halfHourMs) / msPerHour;
}

/** As a JSON number. */
export function unitHours(heldNano: bigint): number {
  return numberOf(hoursNano(heldNano));
}

/** Of all that was held. */
export async function unitHoursOf(all: readonly Rated[], pace: Pace): Promise<number> {
  return unitHours(await heldOf(all, pace));
}

/**
 * What a unit × hour of all that was held cost on average, as decimal text: exact costs by exact quantities, rounded
 * once; 0 where nothing was held.
 */
export async function unitHourCostOf(all: readonly Rated[], pace: Pace): Promise<string> {
  const costs = noCosts(1);
  for (const rated of all) {
    const { whole, rest } = await totalOf(rated, pace);
    addCost(costs, 0, whole, rest);
  }
  const held = await heldOf(all, pace);
  // What is held is in as many parts of a unit × hour as a cost has of 10^-9 of the currency.
  const exactCost = (costs.wholes[0] ?? 0n) * costDenominator + BigInt(costs.rests[0] ?? 0);
  return decimalOf(held === 0n ? 0n : divideHalfUp(exactCost, held));
}

/** 10^-9 units × milliseconds. */
async function heldOf(all: readonly Rated[], pace: Pace): Promise<bigint> {
  let sumNano = 0n;
  for (const { heldNano } of all) {
    for (const held of heldNano) {
      sumNano += held;
      if (pace.isFull()) await pace.turn();
    }
  }
  return sumNano;
}
