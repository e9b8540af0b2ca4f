import type { Interval, Range, Zone } from '../../api/bill.js';
import { addDays, addMonths, dayIn } from '../../format/zone.js';
import type { BillingSearch } from './billing-search.js';

export interface Preset {
  value: string;
  label: string;
  from: string;
  to: string;
}

export function presets(today: string): Preset[] {
  const month = `${today.slice(0, 7)}-01`;
  return [
    { value: 'this-month', label: 'This month', from: month, to: today },
    { value: 'last-month', label: 'Last month', from: addMonths(month, -1), to: addDays(month, -1) },
    { value: 'last-7', label: 'Last 7 days', from: addDays(today, -6), to: today },
    { value: 'last-90', label: 'Last 90 days', from: addDays(today, -89), to: today },
    { value: 'last-12', label: 'Last 12 months', from: addMonths(month, -11), to: today },
  ];
}

/** The interval that draws some dozens of bars. */
function fitting(from: string, to: string): Interval {
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1;
  if (days <= 3) return 'hourly';
  if (days <= 100) return 'daily';
  return days <= 200 ? 'weekly' : 'monthly';
}

/** The range that an address asks for; this month, in the user's zone, unless it says otherwise. */
export function rangeOf(search: BillingSearch, userZone: string, nowMs: number): Range {
  const timezone: Zone = search.zone ?? 'local';
  const today = dayIn(nowMs, timezone === 'local' ? userZone : 'UTC');
  const { from = `${today.slice(0, 7)}-01`, to = today } = search;
  return { from, to, interval: search.interval ?? fitting(from, to), timezone };
}
