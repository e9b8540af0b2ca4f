/** Of the UTC month that the instant is in; epoch milliseconds. */
export function startOfMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** Where UTC months start within a range; epoch milliseconds. */
export function monthStarts(startMs: number, endMs: number): number[] {
  const starts: number[] = [];
  const date = new Date(startOfMonth(startMs));
  while (date.setUTCMonth(date.getUTCMonth() + 1) < endMs) starts.push(date.getTime());
  return starts;
}
