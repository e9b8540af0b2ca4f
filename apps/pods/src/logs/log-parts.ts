import { comparePositions, type LogPosition } from './log-line.js';
import type { LogPage, LogQuery, LogScope } from './log-store.js';

export type LogRange = Pick<LogQuery, 'sinceNs' | 'untilNs'>;

/** What the store is asked for at once, and where the caller is in it. */
export interface LogPart extends LogScope, LogRange {
  readonly after: LogPosition | null;
}

/** One source of a pod that is read oldest lines first. */
interface SourcePart extends LogPart {
  readonly sourceNo: number;
  readonly after: LogPosition;
}

/** `storedNs`: the position up to which its lines are stored. Those that come later have a later one. */
export interface PodSource {
  readonly no: number;
  readonly storedNs: bigint;
}

/**
 * Each source of a pod by itself, from where the caller is in it up to where it is stored: lines of one may be stored
 * later than those of the other, and must not have been passed by then.
 */
export function partsOfSources(
  scope: LogScope,
  sources: readonly PodSource[],
  range: LogRange,
  from: readonly LogPosition[],
): SourcePart[] {
  return sources.map(({ no, storedNs }) => ({
    ...scope,
    sources: [{ no }],
    sourceNo: no,
    sinceNs: range.sinceNs,
    untilNs: storedNs < range.untilNs ? storedNs + 1n : range.untilNs,
    after: inSource(
      no,
      from.find(({ sourceNo }) => sourceNo === no) ?? earliest(from) ?? { atNs: range.sinceNs, sourceNo: 0 },
    ),
  }));
}

/** Whether there is anything to ask the store for: a source may have no line after where the caller is. */
export function isUnread(part: LogPart): boolean {
  return !isOfSource(part) || part.after.atNs < part.untilNs - 1n;
}

/**
 * Where the caller is in each part that is a source, after these pages of them, of which lines up to `readTo` are
 * shown; null: all lines. A part without a page had nothing to read.
 */
export function placesAfter(
  parts: readonly LogPart[],
  pages: ReadonlyMap<LogPart, LogPage>,
  readTo: LogPosition | null,
): LogPosition[] {
  return parts.filter(isOfSource).map((part) => {
    const page = pages.get(part);
    if (!page) return part.after;
    const end = page.readTo ?? { atNs: part.untilNs - 1n, sourceNo: part.sourceNo };
    const place = inSource(part.sourceNo, readTo && comparePositions(readTo, end) < 0 ? readTo : end);
    return comparePositions(place, part.after) > 0 ? place : part.after;
  });
}

export function earliest(positions: readonly LogPosition[]): LogPosition | null {
  return positions.toSorted(comparePositions)[0] ?? null;
}

function isOfSource(part: LogPart): part is SourcePart {
  return 'sourceNo' in part;
}

/** The same place between the lines of a source, as a position of its own. */
function inSource(no: number, { atNs, sourceNo }: LogPosition): LogPosition {
  return { atNs: sourceNo < no && atNs > 0n ? atNs - 1n : atNs, sourceNo: no };
}
