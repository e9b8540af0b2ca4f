import { instantOfAddress } from './log-feed.js';

export const ranges = ['15m', '1h', '6h', '24h', '7d'] as const;
export type LogRange = (typeof ranges)[number];

const minutes: Record<LogRange, number> = { '15m': 15, '1h': 60, '6h': 360, '24h': 1_440, '7d': 10_080 };

/** Characters of a search that the platform takes. */
export const mostSearched = 200;

/** The state of the page of logs, in its address. What cannot be read is left out. */
export interface LogSearch {
  pod?: string;
  /** What lines are searched for. */
  q?: string;
  /** Back from now; with none and without `since` the log is read from its beginning. */
  range?: LogRange;
  since?: string;
  until?: string;
  /** Address of the line that is selected. */
  at?: string;
  /** The log is followed unless it is `off`. */
  live?: 'off';
}

const podName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function validateLogs({ pod, q, range, since, until, at, live }: Record<string, unknown>): LogSearch {
  const from = instant(since);
  const to = instant(until);
  const known = ranges.find((value) => value === range);
  return {
    ...(typeof pod === 'string' && podName.test(pod) && { pod }),
    ...(typeof q === 'string' && q !== '' && { q: q.slice(0, mostSearched) }),
    ...(from === undefined && to === undefined && known !== undefined && { range: known }),
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to }),
    ...(typeof at === 'string' && instantOfAddress(at) !== undefined && { at }),
    ...(live === 'off' && { live }),
  };
}

/** Whether the times hold nothing, since the end is not after the start. */
export function isBackwards({ since, until }: LogSearch): boolean {
  return since !== undefined && until !== undefined && since >= until;
}

/** The start of a range that ends now, as an instant. */
export function startOfRange(range: LogRange, nowMs = Date.now()): string {
  return new Date(nowMs - minutes[range] * 60_000).toISOString();
}

function instant(value: unknown): string | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z$/.test(value))
    return undefined;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : new Date(atMs).toISOString();
}
