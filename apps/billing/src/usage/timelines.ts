import { numberList } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { appendFacts, type Holding, type TimelineSegments } from './appended-segments.js';
import type { AddedFact } from './fact-store.js';
import { rebuildSegments } from './segment-rebuild.js';

/** A timeline with new facts, and whether it has others that are as late as the first of them. */
interface TimelineRow {
  no: number;
  team_no: number;
  has_later: boolean;
  start_ms: string | null;
  quantity_nano: string | null;
  series_no: number | null;
}

const lockStatement = `
  SELECT count(*) FROM (SELECT FROM timeline WHERE no = ANY ($1::integer[]) ORDER BY no FOR NO KEY UPDATE) AS locked`;

/**
 * What is held now began with the latest fact. Where nothing is held, facts are counted from the first new one on: more
 * than the new ones means that there are others.
 */
const stateStatement = `
  SELECT no, timeline.team_no, open.start_ms, quantity_nano, series_no,
    CASE WHEN open.start_ms IS NULL
      THEN added.count < (SELECT count(*) FROM (
        SELECT FROM usage_fact WHERE timeline_no = added.timeline_no AND time_ms >= added.first_ms LIMIT added.count + 1
      ) AS since)
      ELSE open.start_ms >= added.first_ms
    END AS has_later
  FROM unnest($1::integer[], $2::bigint[], $3::integer[]) AS added (timeline_no, first_ms, count)
  JOIN timeline ON no = added.timeline_no
  LEFT JOIN open_segment open ON open.timeline_no = added.timeline_no`;

/** Rows go in by the primary key, whose pages then stay fuller where a batch has several facts of a timeline. */
const appendStatement = `
  WITH ended AS (
    INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
    SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[])
  ), holding AS (
    INSERT INTO open_segment (timeline_no, start_ms, quantity_nano, team_no, series_no)
    SELECT * FROM unnest($7::integer[], $8::bigint[], $9::bigint[], $10::integer[], $11::integer[])
    ON CONFLICT (timeline_no) DO UPDATE
      SET start_ms = excluded.start_ms, quantity_nano = excluded.quantity_nano, series_no = excluded.series_no
  )
  DELETE FROM open_segment WHERE timeline_no = ANY ($12::integer[])`;

/** Keeps the segments of timelines in step with their facts. */
@Injectable()
export class Timelines {
  /**
   * Locks the timelines of new facts until the transaction ends, always in one order, and brings their segments up to
   * date. Facts that are later than all others of their timeline, as most are, take no look at those; for the rest
   * segments are made again around them.
   */
  async add(manager: EntityManager, added: readonly AddedFact[]): Promise<void> {
    const byTimeline = [...Map.groupBy(added, ({ timelineNo }) => timelineNo)].sort(([one], [other]) => one - other);
    const nos = numberList(byTimeline.map(([no]) => no));
    await manager.query(lockStatement, [nos]);
    // A statement of its own, so that it sees what was committed before the locks were had.
    const rows = await manager.query<TimelineRow[]>(stateStatement, [
      nos,
      numberList(byTimeline.map(([, facts]) => Math.min(...facts.map(({ timeMs }) => timeMs)))),
      numberList(byTimeline.map(([, facts]) => facts.length)),
    ]);
    const states = new Map(rows.map((row) => [row.no, row]));
    const appended: (TimelineSegments & { row: TimelineRow })[] = [];
    const late: AddedFact[] = [];
    for (const [no, facts] of byTimeline) {
      const row = states.get(no);
      if (!row || row.has_later) late.push(...facts);
      else appended.push({ row, ...appendFacts(holdingOf(row), facts) });
    }
    if (appended.length > 0) await this.append(manager, appended);
    if (late.length > 0) await rebuildSegments(manager, late);
  }

  private async append(
    manager: EntityManager,
    appended: readonly (TimelineSegments & { row: TimelineRow })[],
  ): Promise<void> {
    const ended = appended.flatMap(({ row, ended: segments }) => segments.map((segment) => ({ ...segment, row })));
    const held = appended.flatMap(({ row, holding }) => (holding ? [{ ...holding, row }] : []));
    const released = appended.filter(({ row, holding }) => !holding && row.start_ms !== null);
    await manager.query(appendStatement, [
      numberList(ended.map(({ row }) => row.no)),
      numberList(ended.map(({ startMs }) => startMs)),
      numberList(ended.map(({ endMs }) => endMs)),
      numberList(ended.map(({ quantityNano }) => quantityNano)),
      numberList(ended.map(({ row }) => row.team_no)),
      numberList(ended.map(({ seriesNo }) => seriesNo)),
      numberList(held.map(({ row }) => row.no)),
      numberList(held.map(({ startMs }) => startMs)),
      numberList(held.map(({ quantityNano }) => quantityNano)),
      numberList(held.map(({ row }) => row.team_no)),
      numberList(held.map(({ seriesNo }) => seriesNo)),
      numberList(released.map(({ row }) => row.no)),
    ]);
  }
}

function holdingOf({ start_ms, quantity_nano, series_no }: TimelineRow): Holding | null {
  if (start_ms === null || quantity_nano === null || series_no === null) return null;
  return { startMs: Number(start_ms), quantityNano: quantity_nano, seriesNo: series_no };
}
