import { expect } from '@jest/globals';
import type { BillingBucket, BillingReport } from '@atoll/contracts/billing';
import { halfUp, perNano, type Oracle, type Piece, type Sum } from './oracle-fixture.js';
import { nanoOf } from './scenario-fixture.js';

/** A list of intervals whose cells are nodes of the rounding tree, below a total that is shown. */
interface Tree {
  total_cost: string;
  intervals: BillingBucket[];
}

const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);
const sumOf = (costs: readonly { cost: string }[]) => sum(costs.map(({ cost }) => nanoOf(cost)));

/** A report without groups: its total is exact but for one rounding, and the tree hangs from it. */
export function expectBill(report: BillingReport, oracle: Oracle): void {
  expect(nanoOf(report.total_cost)).toBe(halfUp(oracle.sum().exact, perNano));
  expectTree(report, oracle);
  expectUnpriced(report, oracle);
}

/** A grouped report: groups add up to the total, each is a tree, and the report's own cells are sums of theirs. */
export function expectGroupedBill<Group extends Tree>(
  report: BillingReport,
  groups: readonly Group[],
  oracle: Oracle,
  keyOf: (piece: Piece) => string,
  nameOf: (group: Group) => string,
): void {
  expect(nanoOf(report.total_cost)).toBe(halfUp(oracle.sum().exact, perNano));
  expect(groups.map(nameOf).sort()).toEqual(oracle.keys(keyOf));
  expect(sum(groups.map(({ total_cost }) => nanoOf(total_cost)))).toBe(nanoOf(report.total_cost));
  for (const group of groups) {
    const part = oracle.where((piece) => keyOf(piece) === nameOf(group));
    expectClose(group.total_cost, part.sum());
    expectTree(group, part);
  }
  expectCells(report.intervals, oracle, BigInt(Math.max(1, groups.length)));
  for (const [index, bucket] of report.intervals.entries()) {
    expect(nanoOf(bucket.cost)).toBe(sum(groups.map(({ intervals }) => nanoOf(intervals[index]!.cost))));
    const below = groups.flatMap(({ intervals }) => intervals[index]!.items);
    for (const { kind, sku, cost } of bucket.items) {
      expect(nanoOf(cost)).toBe(sumOf(below.filter((item) => item.kind === kind && item.sku === sku)));
    }
  }
  expectUnpriced(report, oracle);
}

function expectTree({ total_cost, intervals }: Tree, oracle: Oracle): void {
  expect(sumOf(intervals)).toBe(nanoOf(total_cost));
  for (const { cost, items } of intervals) expect(sumOf(items)).toBe(nanoOf(cost));
  expectCells(intervals, oracle, 1n);
}

/** Each cell is where it should be and closer than 10^-9 (a group's worth each) to what is exact. */
function expectCells(intervals: readonly BillingBucket[], oracle: Oracle, parts: bigint): void {
  const shown = intervals.map(({ start, end, partial }) => [Date.parse(start), Date.parse(end), partial]);
  expect(shown).toEqual(oracle.bounds.slice(0, -1).map((from, index) => [from, oracle.bounds[index + 1], oracle.isPartial(index)]));
  for (const [index, { cost, items }] of intervals.entries()) {
    const [from, to] = [oracle.bounds[index], oracle.bounds[index + 1]];
    expectClose(cost, oracle.sum(undefined, from, to), parts);
    const keys = oracle.keys(({ kind, sku }) => `${kind} ${sku}`).filter((key) => sumOfItem(oracle, key, from, to).heldNanoMs > 0n);
    expect(items.map(({ kind, sku }) => `${kind} ${sku}`)).toEqual(keys);
    for (const item of items) {
      const exact = sumOfItem(oracle, `${item.kind} ${item.sku}`, from, to);
      expectClose(item.cost, exact, parts);
      expect(item.unit_hours).toBe(hoursOf(exact));
    }
  }
}

function sumOfItem(oracle: Oracle, key: string, from?: number, to?: number): Sum {
  return oracle.sum(({ kind, sku }) => `${kind} ${sku}` === key, from, to);
}

function expectClose(shown: string, { exact }: Sum, parts = 1n): void {
  const apart = nanoOf(shown) * perNano - exact;
  if (exact === 0n) expect(shown).toBe('0');
  expect(apart < parts * perNano && apart > -parts * perNano).toBe(true);
}

/** Unit-hours, rounded half up at 9 decimals, as the JSON number with these digits. */
function hoursOf({ heldNanoMs }: Sum): number {
  const nano = halfUp(heldNanoMs, 3_600_000n);
  return Number(`${nano / 1_000_000_000n}.${String(nano % 1_000_000_000n).padStart(9, '0')}`);
}

function expectUnpriced({ unpriced }: BillingReport, oracle: Oracle): void {
  const without = oracle.where(({ priceNano }) => priceNano === null);
  const keyOf = ({ kind, sku, resource }: Piece) => `${kind} ${sku} ${resource}`;
  const expected = without.keys(keyOf).map((key) => [key, hoursOf(without.sum((piece) => keyOf(piece) === key))]);
  expect(unpriced.map(({ kind, sku, resource_id, unit_hours }) => [`${kind} ${sku} ${resource_id}`, unit_hours])).toEqual(expected);
}
