import type { components } from './generated/openapi.js';

export const intervals = ['hourly', 'daily', 'weekly', 'monthly'] as const;
export type Interval = (typeof intervals)[number];
export type Zone = 'utc' | 'local';

/** A range of a report: days of the zone asked for, the last one included. */
export interface Range {
  from: string;
  to: string;
  interval: Interval;
  timezone: Zone;
}

/** What a report is grouped by. */
export const groupings = ['item', 'workspace', 'pool', 'storage'] as const;
export type Grouping = (typeof groupings)[number];

/**
 * One report in one form, whatever it is grouped by: groups whose cells add up to the intervals, and those to the
 * total.
 */
export interface Bill {
  currency: string;
  timezone: string;
  asOf: string;
  total: string;
  intervals: { start: string; end: string; partial: boolean; cost: string }[];
  groups: { id: string; name: string; cost: string; hours: number | null; unit: string | null; cells: string[] }[];
  unpriced: components['schemas']['UnpricedUsage'][];
}
