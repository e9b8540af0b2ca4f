import { minorDigits } from '../../format/format.js';
import { billionths, decimalText, roundToAddUp } from '../../format/money.js';

/** Amounts of an item, as decimal texts. */
interface ItemAmounts {
  start_cost: string;
  end_cost: string;
  price_effect: string;
  quantity_effect: string;
}

interface Compared<Item> {
  currency: string;
  start_month: { total_cost: string };
  end_month: { total_cost: string };
  items: readonly Item[];
}

export interface ShownChange<Item> {
  start: string;
  end: string;
  change: string;
  items: (Item & { start: string; end: string; byQuantity: string; byPrice: string })[];
}

/**
 * A comparison in cents, or in the minor unit of another currency. The costs of the items add up to the months, and the
 * effects of quantity and price to the change: each change is the difference of the costs that are shown, and the
 * effect of the price is its rest. So a cent may stand at another item than in the month before, and an item show a
 * cent of change that it did not have.
 */
export function shownChange<Item extends ItemAmounts>({
  currency,
  start_month,
  end_month,
  items,
}: Compared<Item>): ShownChange<Item> {
  const digits = minorDigits(currency);
  const inCents = (amount: string) => roundToAddUp([amount], digits)[0] ?? '0';
  const [start, end] = [inCents(start_month.total_cost), inCents(end_month.total_cost)];
  const column = (cost: 'start_cost' | 'end_cost', total: string) =>
    roundToAddUp(
      items.map((item) => item[cost]),
      digits,
      total,
    );
  const starts = column('start_cost', start_month.total_cost);
  const ends = column('end_cost', end_month.total_cost);
  const shown = items.map((item, at) => {
    const [from, to] = [starts[at] ?? '0', ends[at] ?? '0'];
    const change = difference(to, from);
    const byQuantity = item.price_effect === '0' ? change : inCents(item.quantity_effect);
    return { ...item, start: from, end: to, byQuantity, byPrice: difference(change, byQuantity) };
  });
  return { start, end, change: difference(end, start), items: shown };
}

function difference(amount: string, less: string): string {
  return decimalText(billionths(amount) - billionths(less));
}
