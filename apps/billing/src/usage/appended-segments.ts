import { monthStarts } from '../calendar/utc-months.js';
import type { AddedFact } from './fact-store.js';

/** The current quantity of a timeline: that of its latest fact, if greater than 0. */
export interface Holding {
  startMs: number;
  /** Decimal digits. */
  quantityNano: string;
  seriesNo: number;
}

export interface TimelineSegments {
  /** Segments that end, in order. */
  ended: (Holding & { endMs: number })[];
  /** Null where nothing is held in the end. */
  holding: Holding | null;
}

/**
 * The segments that new facts of one timeline come to, which are all later than every other fact of it: each ends what
 * was held before. At one instant the greatest (sequence, source, id) holds; source and id are compared bytewise.
 * Segments are cut at the ends of UTC months.
 */
export function appendFacts(before: Holding | null, facts: readonly AddedFact[]): TimelineSegments {
  const ended: TimelineSegments['ended'] = [];
  let holding = before;
  const inOrder = facts.toSorted(byOrder);
  for (const [at, { timeMs, quantityNano, seriesNo }] of inOrder.entries()) {
    if (inOrder[at + 1]?.timeMs === timeMs) continue;
    if (holding) ended.push(...cutAtMonths(holding, timeMs));
    holding = quantityNano === '0' ? null : { startMs: timeMs, quantityNano, seriesNo };
  }
  return { ended, holding };
}

function byOrder(one: AddedFact, other: AddedFact): number {
  return (
    one.timeMs - other.timeMs ||
    one.sequence - other.sequence ||
    bytewise(one.source, other.source) ||
    bytewise(one.id, other.id)
  );
}

function bytewise(one: string, other: string): number {
  return one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function cutAtMonths(holding: Holding, endMs: number): TimelineSegments['ended'] {
  const starts = [holding.startMs, ...monthStarts(holding.startMs, endMs)];
  return starts.map((startMs, at) => ({ ...holding, startMs, endMs: starts[at + 1] ?? endMs }));
}
