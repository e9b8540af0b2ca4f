import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { billionths, decimalText, roundToAddUp, sum } from '../../format/money.js';
import { shownChange } from './shown-change.js';

const cost = fc.bigInt({ min: 0n, max: 10n ** 11n });
/** With their decimals. */
const currency = fc.constantFrom(['JPY', 0] as const, ['USD', 2] as const, ['KWD', 3] as const);
const item = fc.record({ start: cost, end: cost, share: fc.constantFrom(0n, 1n, 2n, 3n) });

function comparisonOf(items: readonly { start: bigint; end: bigint; share: bigint }[], inCurrency = 'USD') {
  const rows = items.map(({ start, end, share }) => {
    const quantity = ((end - start) * share) / 3n;
    return {
      start_cost: decimalText(start),
      end_cost: decimalText(end),
      quantity_effect: decimalText(quantity),
      price_effect: decimalText(end - start - quantity),
    };
  });
  return {
    currency: inCurrency,
    start_month: { total_cost: sum(rows.map(({ start_cost }) => start_cost)) },
    end_month: { total_cost: sum(rows.map(({ end_cost }) => end_cost)) },
    items: rows,
  };
}

describe('a comparison of two months in the minor unit of its currency', () => {
  it('law: its rows add up to the months and to the change, each less than three units from its exact value', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 20 }), currency, (items, [code, digits]) => {
        const exact = comparisonOf(items, code);
        const shown = shownChange(exact);
        const rounded = (amount: string) => roundToAddUp([amount], digits)[0];
        expect([shown.start, shown.end]).toEqual([
          rounded(exact.start_month.total_cost),
          rounded(exact.end_month.total_cost),
        ]);
        expect(sum(shown.items.map(({ start }) => start))).toBe(shown.start);
        expect(sum(shown.items.map(({ end }) => end))).toBe(shown.end);
        expect(sum([shown.start, shown.change])).toBe(shown.end);
        for (const [at, { start, end, byQuantity, byPrice }] of shown.items.entries()) {
          expect(sum([start, byQuantity, byPrice])).toBe(end);
          const { quantity_effect = '', price_effect = '' } = exact.items[at] ?? {};
          expect(awayFrom(byQuantity, quantity_effect)).toBeLessThan(3 / 10 ** digits);
          expect(awayFrom(byPrice, price_effect)).toBeLessThan(3 / 10 ** digits);
        }
      }),
    );
  });

  it('shows no effect of a price that did not change, nor of a quantity that did not', () => {
    const [ofPrice, ofQuantity] = shownChange(
      comparisonOf([
        { start: 4_000_000n, end: 16_000_000n, share: 0n },
        { start: 4_000_000n, end: 16_000_000n, share: 3n },
      ]),
    ).items;
    expect([ofPrice?.byQuantity, ofQuantity?.byPrice]).toEqual(['0', '0']);
  });
});

function awayFrom(shown: string, exact: string): number {
  return Math.abs(Number(decimalText(billionths(shown) - billionths(exact))));
}
