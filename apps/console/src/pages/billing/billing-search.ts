import { groupings, intervals, type Grouping, type Interval, type Zone } from '../../api/bill.js';
import { isDay } from '../../format/zone.js';

/** The state of the billing page, in its address. What is left out has its default; what cannot be read is left out. */
export interface BillingSearch {
  from?: string;
  to?: string;
  interval?: Interval;
  zone?: Zone;
  by?: Grouping;
}

export function validateBilling(search: Record<string, unknown>): BillingSearch {
  const { from, to, interval, zone, by } = search;
  const isRange = isDay(from) && isDay(to) && from <= to;
  return {
    ...(isRange && { from, to }),
    ...pick('interval', intervals, interval),
    ...pick('zone', ['utc', 'local'] as const, zone),
    ...pick('by', groupings, by),
  };
}

export interface ComparisonSearch {
  first?: string;
  second?: string;
  zone?: Zone;
}

const isMonth = (value: unknown): value is string => typeof value === 'string' && isDay(`${value}-01`);

export function validateComparison(search: Record<string, unknown>): ComparisonSearch {
  const { first, second, zone } = search;
  return {
    ...(isMonth(first) && { first }),
    ...(isMonth(second) && { second }),
    ...pick('zone', ['utc', 'local'] as const, zone),
  };
}

function pick<Name extends string, Value extends string>(
  name: Name,
  values: readonly Value[],
  given: unknown,
): Partial<Record<Name, Value>> {
  const found = values.find((value) => value === given);
  return found === undefined ? {} : ({ [name]: found } as Record<Name, Value>);
}
