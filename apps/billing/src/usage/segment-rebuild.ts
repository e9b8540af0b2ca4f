import type { EntityManager } from 'typeorm';
import type { AddedFact } from './fact-store.js';

/** A part of a timeline whose segments are made again: from the fact at `from_ms` up to the one at `to_ms`, or to the end of time. */
interface Reach {
  timeline_no: number;
  from_ms: string;
  to_ms: string | null;
}

/**
 * Makes the segments of the timelines that new facts have changed: from the fact that held before the first of them up to the first one after the last,
 * however long the history is. The timelines must be locked.
 */
export async function rebuildSegments(manager: EntityManager, added: readonly AddedFact[]): Promise<void> {
  const reaches = await manager.query<Reach[]>(clearQuery, [added.map(({ timelineNo }) => timelineNo), added.map(({ timeMs }) => timeMs)]);
  await manager.query(fillQuery, [
    reaches.map(({ timeline_no }) => timeline_no),
    reaches.map(({ from_ms }) => from_ms),
    reaches.map(({ to_ms }) => to_ms),
  ]);
}

const clearQuery = `WITH touched AS (
    SELECT timeline_no, min(time_ms) AS first_ms, max(time_ms) AS last_ms
    FROM unnest($1::integer[], $2::bigint[]) AS added (timeline_no, time_ms) GROUP BY timeline_no
  ), reach AS MATERIALIZED (
    SELECT timeline_no,
      COALESCE((SELECT max(time_ms) FROM usage_fact f WHERE f.timeline_no = touched.timeline_no AND time_ms < first_ms), first_ms) AS from_ms,
      (SELECT min(time_ms) FROM usage_fact f WHERE f.timeline_no = touched.timeline_no AND time_ms > last_ms) AS to_ms
    FROM touched
  ), cleared AS (
    DELETE FROM segment USING reach
    WHERE segment.timeline_no = reach.timeline_no AND start_ms >= from_ms AND start_ms < COALESCE(to_ms, 9223372036854775807)
  )
  SELECT timeline_no, from_ms, to_ms FROM reach`;

/**
 * At one instant the greatest (sequence, source, id) holds; source and id are compared bytewise, by their collation. What has ended is cut at the
 * ends of UTC months; what has not is the timeline's open segment, or there is none.
 */
const fillQuery = `WITH fact_that_holds AS (
    SELECT DISTINCT ON (timeline_no, time_ms) timeline_no, time_ms, quantity_nano, series_no, to_ms
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS reach (timeline_no, from_ms, to_ms)
    JOIN usage_fact USING (timeline_no)
    WHERE time_ms >= from_ms AND time_ms < COALESCE(to_ms, 9223372036854775807)
    ORDER BY timeline_no, time_ms, sequence DESC, source DESC, id DESC
  ), span AS MATERIALIZED (
    SELECT timeline_no, time_ms AS start_ms, COALESCE(lead(time_ms) OVER (PARTITION BY timeline_no ORDER BY time_ms), to_ms) AS end_ms,
      quantity_nano, series_no, team_no
    FROM fact_that_holds JOIN (SELECT no AS series_no, team_no FROM series) AS of_team USING (series_no)
  ), ended AS (
    INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
    SELECT timeline_no, greatest(start_ms, ${msOf('month')}), least(end_ms, ${msOf("month + interval '1 month'")}), quantity_nano, team_no, series_no
    FROM span CROSS JOIN generate_series(${monthOf('start_ms')}, ${monthOf('end_ms - 1')}, interval '1 month') AS month
    WHERE end_ms IS NOT NULL AND quantity_nano > 0
  ), holding AS (
    INSERT INTO open_segment (timeline_no, start_ms, quantity_nano, team_no, series_no)
    SELECT timeline_no, start_ms, quantity_nano, team_no, series_no FROM span WHERE end_ms IS NULL AND quantity_nano > 0
    ON CONFLICT (timeline_no) DO UPDATE
      SET start_ms = excluded.start_ms, quantity_nano = excluded.quantity_nano, series_no = excluded.series_no
  )
  DELETE FROM open_segment USING span
  WHERE open_segment.timeline_no = span.timeline_no AND span.end_ms IS NULL AND span.quantity_nano = 0`;

function msOf(timestamp: string): string {
  return `(extract(epoch FROM ${timestamp}) * 1000)::bigint`;
}

function monthOf(ms: string): string {
  return `date_trunc('month', to_timestamp((${ms}) / 1000) AT TIME ZONE 'UTC')`;
}
