import type { DataSource } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { timingOutMinutes } from './tries.js';

/** The events of one publisher and one name, as one consumer takes them. */
export interface Sequence {
  readonly consumer: string;
  readonly publisher: string;
  readonly eventName: string;
}

/** Positions after `after` and up to `upTo`; without `upTo`, to the last one. */
export interface Gap {
  readonly after: number;
  readonly upTo?: number;
}

export interface Received {
  /** The last event that this consumer has had. */
  readonly last: number;
  /** Where events before a later one never came. */
  readonly gaps: readonly Gap[];
  /** Up to where there are no gaps, whether or not all have had their effect: from there the next look goes on. */
  readonly filledTo: number;
  /** One event each that came, has not had its effect, and is to be fetched again now: the longest due. */
  readonly due: readonly Gap[];
  /** Events that were fetched and have not had their effect, at most 20,000 of them, and those that are due. */
  readonly untaken: number;
}

/** How far a consumer has everything that was published. */
interface Progress {
  readonly position: number;
  /** Gaps that nobody can fill any more. */
  readonly lost: number;
}

/** Rows that one look reads of each kind. */
const longestLook = 20_000;
/** Of which neighbours are asked for together. */
const mostGaps = 1_000;
/** Events that are fetched again in one look. */
const mostDue = 100;

const ofSequence = 'consumer = $1 AND publisher = $2 AND event_name = $3';

/**
 * SQL, for a row without its effect: when it is fetched again. One that the broker brought it may have lost between two
 * tries, between which it waits longer after a timeout.
 */
const dueAt = (untakenMs: string) =>
  `COALESCE(fetch_at, GREATEST(received_at + ${untakenMs} * interval '1 millisecond', timed_out_at + interval '${timingOutMinutes} minutes'))`;

/** Tracks in a service's inbox up to where each sequence of events is complete, and which events are missing. */
export class ReceivedEvents {
  constructor(private readonly dataSource: DataSource) {}

  async progress(sequence: Sequence): Promise<Progress | undefined> {
    const [row] = await this.dataSource.query<Progress[]>(
      `SELECT position::float8 AS position, lost FROM event_progress WHERE ${ofSequence}`,
      keyOf(sequence),
    );
    return row;
  }

  /** Starts a sequence: events at or before `position` are not expected. */
  async begin(sequence: Sequence, position: number): Promise<void> {
    await this.dataSource.query(
      'INSERT INTO event_progress (consumer, publisher, event_name, position) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
      [...keyOf(sequence), position],
    );
  }

  /**
   * Scans the events after `from`, records up to where they are complete, and returns what is due of them, and the gaps
   * between them and after `filledTo`: behind an event that fails for long they may be further away than a look sees.
   * A gap counts once the event after it is `graceMs` old. An event that came and has not had its effect is due after
   * `untakenMs`, or, however far away it is, when it was postponed to.
   */
  async look(
    sequence: Sequence,
    from: number,
    { graceMs, untakenMs }: { graceMs: number; untakenMs: number },
    filledTo = 0,
  ): Promise<Received> {
    // What comes before the first obstacle is worked out once, by a query in a query, and not for each row.
    const rows = await this.dataSource.query<(Received & { reached: number })[]>(
      `WITH known AS (
         SELECT position, previous, received_at, taken_at IS NOT NULL AS is_taken, fetch_at, ${dueAt('$6')} AS due_at,
                lag(position, 1, $4::bigint) OVER (ORDER BY position) AS before
         FROM inbox WHERE ${ofSequence} AND position > $4::bigint ORDER BY position LIMIT ${longestLook}
       ), ahead AS (
         SELECT position, previous, received_at, lag(position, 1, $7::bigint) OVER (ORDER BY position) AS before
         FROM inbox WHERE ${ofSequence} AND position > $7::bigint ORDER BY position LIMIT ${longestLook}
       ), gap AS (
         SELECT min(before) AS after, previous AS "upTo"
         FROM (SELECT before, previous, received_at FROM known UNION ALL SELECT before, previous, received_at FROM ahead) one
         WHERE previous > before AND received_at <= now() - $5 * interval '1 millisecond'
         GROUP BY previous ORDER BY previous LIMIT ${mostGaps}
       ), fetched AS (
         SELECT position, previous, fetch_at AS due_at FROM inbox
         WHERE ${ofSequence} AND fetch_at IS NOT NULL AND taken_at IS NULL AND position > $4::bigint
         ORDER BY fetch_at LIMIT ${longestLook}
       ), untaken AS (
         SELECT * FROM fetched
         UNION ALL SELECT position, previous, due_at FROM known WHERE NOT is_taken AND fetch_at IS NULL AND due_at <= now()
       ), due AS (
         SELECT previous AS after, position AS "upTo", due_at FROM untaken WHERE due_at <= now()
         ORDER BY due_at, position LIMIT ${mostDue}
       )
       SELECT COALESCE((SELECT max(position) FROM known WHERE position < COALESCE(
                         (SELECT min(position) FROM known WHERE NOT is_taken OR previous > before), 'Infinity'::float8)),
                       $4)::float8 AS reached,
              GREATEST((SELECT max(position) FROM inbox WHERE ${ofSequence}), $4)::float8 AS last,
              (SELECT COALESCE(json_agg(gap), '[]') FROM gap) AS gaps,
              COALESCE((SELECT min(before) FROM ahead WHERE previous > before), (SELECT max(position) FROM ahead), $7)::float8 AS "filledTo",
              (SELECT COALESCE(json_agg(json_build_object('after', after, 'upTo', "upTo") ORDER BY due_at, "upTo"), '[]') FROM due) AS due,
              (SELECT count(*) FROM untaken)::int AS untaken`,
      [...keyOf(sequence), from, graceMs, untakenMs, Math.max(from, filledTo)],
    );
    const nothing = { reached: from, last: from, gaps: [], filledTo, due: [], untaken: 0 };
    const { reached, ...received } = rows[0] ?? nothing;
    if (reached > from) {
      await this.dataSource.query(`UPDATE event_progress SET position = $4 WHERE ${ofSequence} AND position < $4`, [
        ...keyOf(sequence),
        reached,
      ]);
    }
    return received;
  }

  /**
   * Claims events that never came, for `forMs`: of processes that fetch the same events, each has its own. Returns the
   * ids of those that nobody else has or had.
   */
  async claim(sequence: Sequence, events: readonly DomainEvent[], forMs: number): Promise<ReadonlySet<string>> {
    const rows = await this.dataSource.query<{ event_id: string }[]>(
      `INSERT INTO inbox (consumer, publisher, event_name, event_id, position, previous, fetch_at)
       SELECT $1, $2, $3, given.*, now() + $7 * interval '1 millisecond'
       FROM unnest($4::uuid[], $5::bigint[], $6::bigint[]) AS given (id, position, previous)
       WHERE given.position > (SELECT position FROM event_progress WHERE ${ofSequence})
       ORDER BY given.position ON CONFLICT DO NOTHING RETURNING event_id`,
      [
        ...keyOf(sequence),
        events.map(({ id }) => id),
        events.map(({ position }) => position),
        events.map(({ previous }) => previous),
        forMs,
      ],
    );
    return new Set(rows.map(({ event_id }) => event_id));
  }

  /** The same of events that came and are due, but for those that a process has in hand. */
  async claimDue(sequence: Sequence, events: readonly DomainEvent[], forMs: number): Promise<ReadonlySet<string>> {
    const [rows] = await this.dataSource.query<[{ event_id: string }[], number]>(
      `UPDATE inbox SET fetch_at = now() + $3 * interval '1 millisecond' WHERE ctid = ANY(ARRAY(
         SELECT ctid FROM inbox WHERE consumer = $1 AND event_id = ANY($2::uuid[]) AND taken_at IS NULL AND ${dueAt('$3')} <= now()
         FOR UPDATE SKIP LOCKED)) RETURNING event_id`,
      [sequence.consumer, events.map(({ id }) => id), forMs],
    );
    return new Set(rows.map(({ event_id }) => event_id));
  }

  /** Events that were claimed have not had their effect: they are fetched again after `ms`. */
  async postpone(consumer: string, eventIds: readonly string[], ms: number): Promise<void> {
    await this.dataSource.query(
      `UPDATE inbox SET fetch_at = now() + $3 * interval '1 millisecond'
       WHERE consumer = $1 AND event_id = ANY($2::uuid[]) AND taken_at IS NULL`,
      [consumer, eventIds, ms],
    );
  }

  /**
   * Gives up the gap that follows the complete part of the sequence. Returns whether there is one. The gap is recorded:
   * the broker may still deliver events that the publisher no longer has, and these were never handled.
   */
  async giveUp(sequence: Sequence, after: number, upTo: number): Promise<boolean> {
    const rows = await this.dataSource.query<object[]>(
      `WITH moved AS (
         UPDATE event_progress SET position = $5, lost = lost + 1 WHERE ${ofSequence} AND position = $4 RETURNING true
       ), kept AS (
         INSERT INTO event_gap (consumer, publisher, event_name, after, up_to) SELECT $1, $2, $3, $4, $5 FROM moved ON CONFLICT DO NOTHING
       )
       SELECT FROM moved`,
      [...keyOf(sequence), after, upTo],
    );
    return rows.length > 0;
  }

  /**
   * Publishers of an event that any service may publish, as far as they have ever reached this consumer. The index of
   * the inbox is read from one publisher to the next, not row by row: a consumer of usage has millions.
   */
  async publishersOf(consumer: string, eventName: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ publisher: string }[]>(
      `WITH RECURSIVE found (publisher) AS (
         (SELECT publisher FROM inbox WHERE consumer = $1 AND position IS NOT NULL ORDER BY publisher LIMIT 1)
         UNION ALL
         SELECT (SELECT publisher FROM inbox WHERE consumer = $1 AND publisher > found.publisher AND position IS NOT NULL ORDER BY publisher LIMIT 1)
         FROM found WHERE publisher IS NOT NULL
       )
       SELECT publisher FROM found
       WHERE EXISTS (SELECT FROM inbox WHERE consumer = $1 AND inbox.publisher = found.publisher AND event_name = $2 AND position IS NOT NULL)
       UNION SELECT publisher FROM event_progress WHERE consumer = $1 AND event_name = $2`,
      [consumer, eventName],
    );
    return rows.map(({ publisher }) => publisher);
  }
}

function keyOf({ consumer, publisher, eventName }: Sequence): string[] {
  return [consumer, publisher, eventName];
}
