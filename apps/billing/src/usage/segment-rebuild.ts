import { numberList } from '@atoll/database';
import type { EntityManager } from 'typeorm';
import { monthStarts, startOfMonth } from '../calendar/utc-months.js';
import type { AddedFact } from './fact-store.js';

/** From one instant at which facts were told of a timeline to the next; or to the end of time. */
interface Step {
  timeline_no: number;
  start_ms: string;
  end_ms: string | null;
}

/**
 * Makes the segments anew that new facts have changed, and no others, however long the history is: a fact changes the
 * step that begins with it, and ends the one before it. The timelines must be locked.
 */
export async function rebuildSegments(manager: EntityManager, added: readonly AddedFact[]): Promise<void> {
  const steps = await manager.query<Step[]>(clearQuery, [
    numberList(added.map(({ timelineNo }) => timelineNo)),
    numberList(added.map(({ timeMs }) => timeMs)),
  ]);
  await manager.query(fillQuery, [
    numberList(steps.map(({ timeline_no }) => timeline_no)),
    numberList(steps.map(({ start_ms }) => start_ms)),
    numberList(steps.map(({ end_ms }) => end_ms)),
    numberList(monthsOf(steps)),
  ]);
}

/** The starts of the UTC months that the steps are in, and of the one after them. */
function monthsOf(steps: readonly Step[]): number[] {
  const ends = steps.flatMap(({ start_ms, end_ms }) => [Number(start_ms), Number(end_ms ?? start_ms)]);
  const [first, last] = [Math.min(...ends), Math.max(...ends)];
  return [startOfMonth(first), ...monthStarts(first, last + longestMonthMs)];
}

const longestMonthMs = 31 * 86_400_000;

const clearQuery = `WITH added AS (
    SELECT DISTINCT timeline_no, time_ms FROM unnest($1::integer[], $2::bigint[]) AS added (timeline_no, time_ms)
  ), begun AS (
    SELECT timeline_no, time_ms AS start_ms FROM added
    UNION
    SELECT timeline_no, (SELECT max(time_ms) FROM usage_fact f WHERE f.timeline_no = added.timeline_no AND f.time_ms < added.time_ms) FROM added
  ), step AS MATERIALIZED (
    SELECT timeline_no, start_ms,
      (SELECT min(time_ms) FROM usage_fact f WHERE f.timeline_no = begun.timeline_no AND f.time_ms > start_ms) AS end_ms
    FROM begun WHERE start_ms IS NOT NULL
  ), cleared AS (
    DELETE FROM segment USING step
    WHERE segment.timeline_no = step.timeline_no AND segment.start_ms >= step.start_ms
      AND segment.start_ms < COALESCE(step.end_ms, 9223372036854775807)
  )
  SELECT timeline_no, start_ms, end_ms FROM step`;

/**
 * At one instant the greatest (sequence, source, id) holds; source and id are compared bytewise, by their collation.
 * What has ended is cut at the ends of UTC months; what has not is the timeline's open segment, or there is none. Rows
 * go in by the primary key, whose pages then stay fuller where a batch tells several facts of a timeline.
 */
const fillQuery = `WITH span AS MATERIALIZED (
    SELECT timeline_no, start_ms, end_ms, quantity_nano, series_no, team_no
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS step (timeline_no, start_ms, end_ms)
    CROSS JOIN LATERAL (
      SELECT quantity_nano, series_no FROM usage_fact fact WHERE fact.timeline_no = step.timeline_no AND time_ms = start_ms
      ORDER BY sequence DESC, source DESC, id DESC LIMIT 1
    ) AS fact_that_holds
    JOIN (SELECT no AS timeline_no, team_no FROM timeline) AS of_team USING (timeline_no)
  ), ended AS (
    INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
    SELECT timeline_no, greatest(start_ms, ($4::bigint[])[month]), least(end_ms, ($4::bigint[])[month + 1]), quantity_nano, team_no, series_no
    FROM span CROSS JOIN generate_series(width_bucket(start_ms, $4::bigint[]), width_bucket(end_ms - 1, $4::bigint[])) AS month
    WHERE end_ms IS NOT NULL AND quantity_nano > 0 ORDER BY timeline_no, 2
  ), holding AS (
    INSERT INTO open_segment (timeline_no, start_ms, quantity_nano, team_no, series_no)
    SELECT timeline_no, start_ms, quantity_nano, team_no, series_no FROM span WHERE end_ms IS NULL AND quantity_nano > 0
    ON CONFLICT (timeline_no) DO UPDATE
      SET start_ms = excluded.start_ms, quantity_nano = excluded.quantity_nano, series_no = excluded.series_no
  )
  DELETE FROM open_segment USING span
  WHERE open_segment.timeline_no = span.timeline_no AND span.end_ms IS NULL AND span.quantity_nano = 0`;
