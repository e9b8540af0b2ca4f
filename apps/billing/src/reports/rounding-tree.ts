import type { UsageKind } from '@atoll/contracts/billing';
import { largestOf, largestRemainder } from '../money/rounding.js';
import type { Pace } from '@atoll/waiting';
import { addCost, isHalf, noCosts, totalOf, type ExactCosts, type Rated } from './rated-usage.js';

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
 * Rounds a report once, from its root down: the exact total half up at 9 decimals, then the groups, then the buckets of
 * each, then the items of each bucket, by largest remainder at each level. So what is shown adds up, and each of it is
 * within 10^-9 of exact.
 */
export async function roundTree<Group extends ExactGroup>(
  groups: readonly Group[],
  pace: Pace,
): Promise<(Group & ShownGroup)[]> {
  const sums: BucketSums[] = [];
  const totals = noCosts(groups.length);
  for (const [n, { lines }] of groups.entries()) {
    const sum = await sumOf(lines, pace);
    const { whole, rest } = await totalOf(sum, pace);
    addCost(totals, n, whole, rest);
    sums.push(sum);
  }
  const { whole, rest } = await totalOf(totals, pace);
  const totalsNano = await largestRemainder(whole + (isHalf(rest) ? 1n : 0n), totals.wholes, totals.rests, pace);
  const shown: (Group & ShownGroup)[] = [];
  for (const [n, group] of groups.entries()) {
    const totalNano = totalsNano[n] ?? 0n;
    const sum = sums[n] ?? { ...noCosts(0), carries: [] };
    const costsNano = await largestRemainder(totalNano, sum.wholes, sum.rests, pace);
    shown.push({ ...group, totalNano, costsNano, items: await roundItems(group.lines, sum, costsNano, pace) });
  }
  return shown;
}

/** All groups as one: sums of what they show. */
export async function mergeGroups(groups: readonly ShownGroup[], pace: Pace): Promise<ShownGroup> {
  const [only] = groups;
  if (only && groups.length === 1) return only;
  const items = new Map<string, Item & { heldNano: bigint[]; costsNano: bigint[] }>();
  const costsNano: bigint[] = [];
  let totalNano = 0n;
  for (const group of groups) {
    totalNano += group.totalNano;
    await addTo(costsNano, group.costsNano, pace);
    for (const item of group.items) {
      const key = `${item.kind} ${item.sku}`;
      const sum = items.get(key) ?? { ...item, heldNano: [], costsNano: [] };
      items.set(key, sum);
      await addTo(sum.heldNano, item.heldNano, pace);
      await addTo(sum.costsNano, item.costsNano, pace);
    }
  }
  const inOrder = [...items].sort(([a], [b]) => (a < b ? -1 : 1));
  return { totalNano, costsNano, items: inOrder.map(([, item]) => item) };
}

async function addTo(sums: bigint[], amounts: readonly bigint[], pace: Pace): Promise<void> {
  for (let n = 0; n < amounts.length; n += 1) {
    sums[n] = (sums[n] ?? 0n) + (amounts[n] ?? 0n);
    if (pace.isFull()) await pace.turn();
  }
}

/** The items of each bucket together. */
interface BucketSums extends ExactCosts {
  /** By how much the whole of each bucket is more than the wholes of its items: their rests come to so much. */
  readonly carries: readonly number[];
}

async function sumOf(items: readonly ExactItem[], pace: Pace): Promise<BucketSums> {
  const [first] = items;
  if (first && items.length === 1) return { ...first, carries: [] };
  const sum = noCosts(first?.wholes.length ?? 0);
  const carries = new Array<number>(sum.wholes.length).fill(0);
  for (const { wholes, rests } of items) {
    for (let bucket = 0; bucket < wholes.length; bucket += 1) {
      if (addCost(sum, bucket, wholes[bucket] ?? 0n, rests[bucket] ?? 0)) carries[bucket] = (carries[bucket] ?? 0) + 1;
      if (pace.isFull()) await pace.turn();
    }
  }
  return { ...sum, carries };
}

async function roundItems(
  items: readonly ExactItem[],
  sum: BucketSums,
  bucketsNano: readonly bigint[],
  pace: Pace,
): Promise<ShownItem[]> {
  // Where there is one item it costs what its bucket does.
  const columns = items.length === 1 ? [bucketsNano] : await roundBuckets(items, sum, bucketsNano, pace);
  return items.map(({ kind, sku, unit, heldNano }, n) => ({ kind, sku, unit, heldNano, costsNano: columns[n] ?? [] }));
}

/** Of each item: its costs by bucket. */
async function roundBuckets(
  items: readonly ExactItem[],
  { wholes, carries }: BucketSums,
  bucketsNano: readonly bigint[],
  pace: Pace,
): Promise<bigint[][]> {
  const columns = items.map((item) => item.wholes.slice());
  for (let bucket = 0; bucket < bucketsNano.length; bucket += 1) {
    const missing = (carries[bucket] ?? 0) + (bucketsNano[bucket] === wholes[bucket] ? 0 : 1);
    if (missing === 0) continue;
    const rests = items.map((item) => item.rests[bucket] ?? 0);
    for (const n of await largestOf(rests, missing, pace)) {
      const column = columns[n] ?? [];
      column[bucket] = (column[bucket] ?? 0n) + 1n;
    }
    if (pace.isFull(items.length)) await pace.turn();
  }
  return columns;
}
