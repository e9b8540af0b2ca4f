import { approximate, sum } from '../../format/money.js';

interface Day {
  /** Whether it has not ended yet. */
  partial: boolean;
  cost: string;
}

/**
 * How much more the days of this month that have ended cost than the same days of last month, in percent. A day that
 * last month does not have, such as the 31st, is left out. Null where no day is left, or those of last month cost
 * nothing.
 */
export function changeOfSameDays(thisMonth: readonly Day[], lastMonth: readonly Day[]): number | null {
  const whole = thisMonth.filter(({ partial }) => !partial);
  const costOf = (days: readonly Day[], count: number) => sum(days.slice(0, count).map(({ cost }) => cost));
  const before = costOf(lastMonth, whole.length);
  if (before === '0') return null;
  return (approximate(costOf(whole, lastMonth.length)) / approximate(before) - 1) * 100;
}
