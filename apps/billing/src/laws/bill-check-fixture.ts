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
    expect([group.total_cost, isClose(group.total_cost, part.sum())]).toEqual([group.total_cost, true]);
    expectTree(group, part);
  }
  expectCells(report.intervals, oracle, BigInt(Math.max(1, groups.length)));
  const notTheSum = report.intervals.flatMap(({ start, cost, items }, index) => {
    const ofGroups = groups.map(({ intervals }) => intervals[index]!);
    const below = ofGroups.flatMap((interval) => interval.items);
    const wrong: unknown[] = items.filter(
      (one) => nanoOf(one.cost) !== sumOf(below.filter((item) => isSameItem(item, one))),
    );
    return nanoOf(cost) === sumOf(ofGroups) ? wrong : [{ start, cost, ofGroups }, ...wrong];
  });
  expect(notTheSum).toEqual([]);
  expectUnpriced(report, oracle);
}

function isSameItem(one: { kind: string; sku: string }, other: { kind: string; sku: string }): boolean {
  return one.kind === other.kind && one.sku === other.sku;
}

function expectTree({ total_cost, intervals }: Tree, oracle: Oracle): void {
  expect(sumOf(intervals)).toBe(nanoOf(total_cost));
  expect(intervals.filter(({ cost, items }) => sumOf(items) !== nanoOf(cost))).toEqual([]);
  expectCells(intervals, oracle, 1n);
}

/** Each cell is where it should be and closer than 10^-9 (a group's worth each) to what is exact. */
function expectCells(intervals: readonly BillingBucket[], oracle: Oracle, parts: bigint): void {
  const shown = intervals.map(({ start, end, partial }) => [Date.parse(start), Date.parse(end), partial]);
  expect(shown).toEqual(
    oracle.bounds.slice(0, -1).map((from, index) => [from, oracle.bounds[index + 1], oracle.isPartial(index)]),
  );
  const keys = oracle.keys(({ kind, sku }) => `${kind} ${sku}`);
  const wrong = intervals.flatMap(({ cost, items }, index) => {
    const [from, to] = [oracle.bounds[index], oracle.bounds[index + 1]];
    const cell = oracle.sum(undefined, from, to);
    const found: unknown[] = isClose(cost, cell, parts) ? [] : [{ index, cost, cell }];
    const exact = new Map(
      keys
        .map((key) => [key, sumOfItem(oracle, key, from, to)] as const)
        .filter(([, { heldNanoMs }]) => heldNanoMs > 0n),
    );
    const shownKeys = items.map(({ kind, sku }) => `${kind} ${sku}`);
    if (shownKeys.join() !== [...exact.keys()].join()) found.push({ index, shownKeys, keys: [...exact.keys()] });
    for (const item of items) {
      const itemSum = exact.get(`${item.kind} ${item.sku}`);
      const isExact = itemSum && isClose(item.cost, itemSum, parts) && item.unit_hours === hoursOf(itemSum);
      if (!isExact) found.push({ index, item, itemSum });
    }
    return found;
  });
  expect(wrong).toEqual([]);
}

function sumOfItem(oracle: Oracle, key: string, from?: number, to?: number): Sum {
  return oracle.sum(({ kind, sku }) => `${kind} ${sku}` === key, from, to);
}

function isClose(shown: string, { exact }: Sum, parts = 1n): boolean {
  const apart = nanoOf(shown) * perNano - exact;
  return (exact !== 0n || shown === '0') && apart < parts * perNano && apart > -parts * perNano;
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
  expect(
    unpriced.map(({ kind, sku, resource_id, unit_hours }) => [`${kind} ${sku} ${resource_id}`, unit_hours]),
  ).toEqual(expected);
}
