import type { MetricWindow } from '../api/queries.js';

/** Windows over which use is shown, by their names. */
export const metricWindows: readonly { value: MetricWindow; label: string }[] = [
  { value: 'last_1h', label: 'Last hour' },
  { value: 'last_6h', label: 'Last 6 hours' },
  { value: 'last_24h', label: 'Last 24 hours' },
  { value: 'last_7d', label: 'Last 7 days' },
  { value: 'last_30d', label: 'Last 30 days' },
];

/** The window in an address; left out where it names none. */
export function validateWindow({ window }: Record<string, unknown>): { window?: MetricWindow } {
  const known = metricWindows.find(({ value }) => value === window)?.value;
  return known === undefined ? {} : { window: known };
}
