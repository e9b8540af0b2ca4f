import type { UsageKind } from '@atoll/contracts';
import { largestRemainder } from '../money/rounding.js';
import { addCost, costDenominator, noCosts, totalOf, type ExactCosts, type Rated } from './rated-usage.js';

/** A SKU of a group. */
interface Item {
  kind: UsageKind;
  sku: string;
  unit: string | null;
}

type ExactItem = Item & Rated;

interface ExactGroup {
  lines: readonly ExactItem[];
}

/** As shown, by bucket. */
export interface ShownItem extends Item {
  /** 10^-9 units × milliseconds, exact still. */
  readonly heldNano: readonly bigint[];
  /** 10^-9 of the currency. */
  readonly costsNano: readonly bigint[];
}

/** Costs in 10^-9 of the currency that add up: the items’ to each bucket’s, and those to the total. */
export interface ShownGroup {
  totalNano: bigint;
  costsNano: readonly bigint[];
  items: readonly ShownItem[];
}

/**
 * Rounds a report once, from its root down: the exact total half up at 9 decimals, then the groups, then the buckets of each, then the items of
 * each bucket, by largest remainder at each level. So what is shown adds up, and each of it is within 10^-9 of exact.
 */
export function roundTree<Group extends ExactGroup>(groups: readonly Group[]): (Group & ShownGroup)[] {
  const buckets = groups.map(({ lines }) => sumOf(lines));
  const totals = noCosts(groups.length);
  for (const [n, { whole, rest }] of buckets.map(totalOf).entries()) addCost(totals, n, whole, rest);
  const { whole, rest } = totalOf(totals);
  const isHalf = 2n * rest >= costDenominator;
  const totalsNano = largestRemainder(whole + (isHalf ? 1n : 0n), totals.wholes, totals.rests);
  return groups.map((group, n) => {
    const totalNano = totalsNano[n] ?? 0n;
    const { wholes, rests } = buckets[n] ?? noCosts(0);
    const costsNano = largestRemainder(totalNano, wholes, rests);
    return { ...group, totalNano, costsNano, items: roundItems(group.lines, costsNano) };
  });
}

/** All groups as one: sums of what they show. */
export function mergeGroups(groups: readonly ShownGroup[]): ShownGroup {
  const [only] = groups;
  if (only && groups.length === 1) return only;
  const items = new Map<string, Item & { heldNano: bigint[]; costsNano: bigint[] }>();
  const costsNano: bigint[] = [];
  let totalNano = 0n;
  for (const group of groups) {
    totalNano += group.totalNano;
    addTo(costsNano, group.costsNano);
    for (const item of group.items) {
      const key = `${item.kind} ${item.sku}`;
      const sum = items.get(key);
      if (!sum) items.set(key, { ...item, heldNano: item.heldNano.slice(), costsNano: item.costsNano.slice() });
      else {
        addTo(sum.heldNano, item.heldNano);
        addTo(sum.costsNano, item.costsNano);
      }
    }
  }
  const inOrder = [...items].sort(([a], [b]) => (a < b ? -1 : 1));
  return { totalNano, costsNano, items: inOrder.map(([, item]) => item) };
}

function addTo(sums: bigint[], amounts: readonly bigint[]): void {
  amounts.forEach((amount, n) => (sums[n] = (sums[n] ?? 0n) + amount));
}

/** The items of each bucket together. */
function sumOf(items: readonly ExactItem[]): ExactCosts {
  const [first] = items;
  if (first && items.length === 1) return first;
  const sum = noCosts(first?.wholes.length ?? 0);
  for (const { wholes, rests } of items) wholes.forEach((whole, bucket) => addCost(sum, bucket, whole, rests[bucket] ?? 0n));
  return sum;
}

function roundItems(items: readonly ExactItem[], bucketsNano: readonly bigint[]): ShownItem[] {
  const columns = items.map(() => bucketsNano.slice());
  let rounded: bigint[] = [];
  for (let bucket = 0; items.length > 1 && bucket < bucketsNano.length; bucket += 1) {
    const bucketNano = bucketsNano[bucket] ?? 0n;
    const isAsBefore = bucketNano === bucketsNano[bucket - 1] && items.every((item) => isSameCost(item, bucket));
    if (!isAsBefore) rounded = roundBucket(items, bucket, bucketNano);
    for (let n = 0; n < rounded.length; n += 1) (columns[n] ?? [])[bucket] = rounded[n] ?? 0n;
  }
  return items.map(({ kind, sku, unit, heldNano }, n) => ({ kind, sku, unit, heldNano, costsNano: columns[n] ?? [] }));
}

/** As in the bucket before. */
function isSameCost({ wholes, rests }: ExactCosts, bucket: number): boolean {
  return rests[bucket] === rests[bucket - 1] && wholes[bucket] === wholes[bucket - 1];
}

function roundBucket(items: readonly ExactItem[], bucket: number, bucketNano: bigint): bigint[] {
  const wholes = items.map((item) => item.wholes[bucket] ?? 0n);
  const rests = items.map((item) => item.rests[bucket] ?? 0n);
  return largestRemainder(bucketNano, wholes, rests);
}
