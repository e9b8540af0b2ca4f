import type { EntityManager } from 'typeorm';
import type { SourceLines } from './log-line.js';

/** New lines of a source, and how far it is read with them. */
export interface ReadLines extends SourceLines {
  readonly podId: string;
  readonly run: number;
  /** Where the source was read on from, and where to go on. */
  readonly before: string | null;
  readonly cursor: string | null;
  /** Position of the last line that was read, stored or not. */
  readonly lastNs: bigint;
  /** The run has ended, and all of it is read. */
  readonly isComplete: boolean;
  /** What the platform has to say about it, in the log of the same pod. */
  readonly notices: readonly string[];
  /** Which lines of the platform these are. */
  readonly platformLineIds: readonly string[];
}

/** A reader that was thought dead finds another one’s cursor, and what it has read counts no more. */
const saveCursors = `
  UPDATE log_source source SET run = read.run, cursor = read.cursor, last_ns = read.last_ns, changed_at = clock_timestamp()
  FROM unnest($2::integer[], $3::integer[], $4::text[], $5::text[], $6::bigint[]) AS read (no, run, before, cursor, last_ns)
  WHERE source.no = read.no AND source.reader_id = $1::uuid
    AND (CASE WHEN source.run = read.run THEN source.cursor END) IS NOT DISTINCT FROM read.before
  RETURNING source.no`;

/** Those of the sources of which nothing is left to read have no reader any more, and hold nobody up. */
const leaveRead = `
  UPDATE log_source source SET reader_id = NULL, read_to = NULL, holds_until = NULL
  WHERE reader_id = $1::uuid AND no = ANY ($2::integer[]) AND CASE WHEN is_platform
    THEN NOT EXISTS (SELECT FROM platform_line line WHERE line.pod_id = source.pod_id OFFSET 0)
    ELSE NOT EXISTS (SELECT FROM pod_run run WHERE run.pod_id = source.pod_id AND NOT is_log_read OFFSET 0) END`;

/**
 * Within the transaction that stores the lines: how far these were read, with what follows from it. Returns the numbers
 * of the sources that the reader still reads; nothing of the others is saved.
 */
export async function saveReads(
  manager: EntityManager,
  readerId: string,
  reads: readonly ReadLines[],
): Promise<ReadonlySet<number>> {
  const rows = await manager.query<[{ no: number }[], number]>(saveCursors, [
    readerId,
    reads.map(({ source }) => source.no),
    reads.map(({ run }) => run),
    reads.map(({ before }) => before),
    reads.map(({ cursor }) => cursor),
    reads.map(({ lastNs }) => String(lastNs)),
  ]);
  const kept = new Set(rows[0].map(({ no }) => no));
  const saved = reads.filter(({ source }) => kept.has(source.no));
  await saveEffects(manager, saved);
  const ended = saved.flatMap(({ isComplete, source }) => (isComplete || source.isPlatform ? [source.no] : []));
  if (ended.length > 0) await manager.query(leaveRead, [readerId, ended]);
  return kept;
}

async function saveEffects(manager: EntityManager, reads: readonly ReadLines[]): Promise<void> {
  const complete = reads.filter(({ isComplete, source }) => isComplete && !source.isPlatform);
  if (complete.length > 0) {
    await manager.query(
      `UPDATE pod_run SET is_log_read = true FROM unnest($1::uuid[], $2::integer[]) AS read (pod_id, run)
       WHERE pod_run.pod_id = read.pod_id AND pod_run.run = read.run`,
      [complete.map(({ podId }) => podId), complete.map(({ run }) => run)],
    );
  }
  const storedIds = reads.flatMap(({ platformLineIds }) => platformLineIds);
  // These alone: an earlier id may be of a transaction that has committed since.
  if (storedIds.length > 0) await manager.query('DELETE FROM platform_line WHERE id = ANY ($1::bigint[])', [storedIds]);
  const notices = reads.flatMap(({ podId, notices: messages }) => messages.map((message) => ({ podId, message })));
  if (notices.length > 0) {
    await manager.query(`INSERT INTO platform_line (pod_id, message) SELECT * FROM unnest($1::uuid[], $2::text[])`, [
      notices.map(({ podId }) => podId),
      notices.map(({ message }) => message),
    ]);
  }
}
