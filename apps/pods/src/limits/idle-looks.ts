import type { IdleStop } from '@atoll/contracts/pods';
import type { Idleness } from '../model/idleness.js';

/** Longest time between two looks; after more, it is not known that the pod was idle meanwhile. */
export const maxGapMs = 150_000;
export const warnMs = 600_000;

/**
 * The greatest use of any of its own slices since the last look, in percent; null where a slice has no figure of its
 * own.
 */
export interface Look {
  readonly atMs: number;
  readonly peakPercent: number | null;
}

export type Verdict = 'goes on' | 'warn' | 'stop';

/**
 * What follows from a look. A pod is stopped after the rule's minutes in which every look has found all of its own
 * slices below the rule's percent. A look without a figure, or too late to tell, begins the count anew.
 */
export function afterLook(
  before: Idleness | null,
  { atMs, peakPercent }: Look,
  rule: IdleStop,
): Idleness & { readonly verdict: Verdict } {
  const isIdle = peakPercent !== null && peakPercent < rule.gpu_below_percent;
  if (!isIdle) return { lookedAtMs: atMs, sinceMs: null, isWarned: false, verdict: 'goes on' };
  const isContinued = before !== null && before.sinceMs !== null && atMs - before.lookedAtMs <= maxGapMs;
  const sinceMs = isContinued && before.sinceMs !== null ? before.sinceMs : atMs;
  const leftMs = rule.minutes * 60_000 - (atMs - sinceMs);
  const isWarned = isContinued && before.isWarned;
  if (leftMs <= 0) return { lookedAtMs: atMs, sinceMs, isWarned, verdict: 'stop' };
  const isDue = !isWarned && leftMs <= warnMs;
  return { lookedAtMs: atMs, sinceMs, isWarned: isWarned || isDue, verdict: isDue ? 'warn' : 'goes on' };
}
