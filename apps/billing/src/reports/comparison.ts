import type { BilledMonth, ComparisonReport, ItemChange } from '@atoll/contracts/billing';
import { decimalOf, numberOf } from '../money/amounts.js';
import { divideHalfUp } from '../money/rounding.js';
import type { Pace } from '@atoll/waiting';
import { costDenominator, unitHours } from './rated-usage.js';
import type { ReportLine, UnratedLines } from './unrated-usage.js';
import { roundTree } from './rounding-tree.js';

/** A SKU in one month: exactly, and as shown. */
interface MonthItem extends Pick<ReportLine, 'kind' | 'sku' | 'unit'> {
  /** 10^-9 units × milliseconds. */
  heldNano: bigint;
  /** 10^-9 of the currency × costDenominator. */
  exactCostNano: bigint;
  costNano: bigint;
}

/** As shown. */
interface RoundedMonth {
  totalNano: bigint;
  /** By kind and SKU, in that order. */
  items: ReadonlyMap<string, MonthItem>;
}

/** A month’s lines, each of one bucket, rounded from their total down. */
export async function monthOf(unrated: UnratedLines, pace: Pace): Promise<RoundedMonth> {
  const lines = await unrated.rate(pace);
  const [shown] = await roundTree([{ lines }], pace);
  const items = lines.map(({ kind, sku, unit, heldNano, wholes, rests }, n): MonthItem => {
    const exactCostNano = (wholes[0] ?? 0n) * costDenominator + BigInt(rests[0] ?? 0);
    return {
      kind,
      sku,
      unit,
      heldNano: heldNano[0] ?? 0n,
      exactCostNano,
      costNano: shown?.items[n]?.costsNano[0] ?? 0n,
    };
  });
  return { totalNano: shown?.totalNano ?? 0n, items: new Map(items.map((item) => [`${item.kind} ${item.sku}`, item])) };
}

export function billedMonth(month: string, { totalNano, items }: RoundedMonth): BilledMonth {
  return {
    month,
    total_cost: decimalOf(totalNano),
    items: [...items.values()].map(({ kind, sku, unit, heldNano, costNano }) => ({
      kind,
      sku,
      unit,
      unit_hours: unitHours(heldNano),
      cost: decimalOf(costNano),
    })),
  };
}

/** What changed from one month to another, in all and by item: differences of what is shown of them. */
export function changeBetween(start: RoundedMonth, end: RoundedMonth): Pick<ComparisonReport, 'change' | 'items'> {
  const changeNano = end.totalNano - start.totalNano;
  const keys = [...new Set([...start.items.keys(), ...end.items.keys()])].sort();
  return {
    change: {
      amount: decimalOf(changeNano),
      percent: start.totalNano === 0n ? null : percentOf(changeNano, start.totalNano),
    },
    items: keys.flatMap((key) => itemChange(start.items.get(key), end.items.get(key)) ?? []),
  };
}

/** Two decimals, a half upwards. */
function percentOf(partNano: bigint, wholeNano: bigint): number {
  return numberOf(divideHalfUp(10_000n * partNano, wholeNano) * 10_000_000n);
}

function itemChange(start: MonthItem | undefined, end: MonthItem | undefined): ItemChange | undefined {
  const item = start ?? end;
  if (!item) return undefined;
  const [startNano, endNano] = [start?.costNano ?? 0n, end?.costNano ?? 0n];
  const changeNano = endNano - startNano;
  const quantityNano = start && end ? quantityEffect(start, end) : changeNano;
  return {
    kind: item.kind,
    sku: item.sku,
    start_cost: decimalOf(startNano),
    end_cost: decimalOf(endNano),
    change: decimalOf(changeNano),
    price_effect: decimalOf(changeNano - quantityNano),
    quantity_effect: decimalOf(quantityNano),
  };
}

/**
 * What the change of quantity would have cost at the first month’s average price: from the exact figures, rounded once.
 */
function quantityEffect(start: MonthItem, end: MonthItem): bigint {
  return divideHalfUp((end.heldNano - start.heldNano) * start.exactCostNano, start.heldNano * costDenominator);
}
