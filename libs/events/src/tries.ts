import type { Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { inboxColumns, inboxParameters, inboxValues } from './inbox-row.js';
import { processLock } from './relay-session.js';

/** Of the events after one in its sequence, those that are looked at for one that had its effect. */
const latestEvents = 100;
/** How long ago an event may have timed out that still does: longer than the longest wait between two tries of it. */
export const timingOutMinutes = 20;

interface Row {
  tries: number;
  is_taken: boolean;
  is_gone: boolean;
  was_missed: boolean;
  is_overdue: boolean;
}

/**
 * Counts the tries of an event by a consumer that ran and failed: by an error, or by the end of the process that ran
 * it. A process that is frozen, or that lost the database or the broker meanwhile, has failed nothing. Whether the
 * process of a try has ended, its lock tells (`RelaySession`): it must be free for a while, since a process that lost
 * its connections takes it again.
 */
export class Tries {
  constructor(
    private readonly transactions: Transactions,
    private readonly dataSource: DataSource,
    private readonly processId: string,
    /** How long the lock of a process must be free before its tries count as failed. */
    private readonly goneAfterMs: number,
  ) {}

  /**
   * Begins a try that may not be the first one. Returns the number of tries that failed before it, `taken` if the event
   * needs none, or `undecided` if it must wait until it is known whether the last try has ended.
   */
  async begin(consumer: string, event: DomainEvent): Promise<number | 'taken' | 'undecided'> {
    const { id: eventId } = event;
    return this.transactions.run(async (manager) => {
      const row = await this.lock(manager, consumer, event);
      if (row.is_taken) return 'taken';
      if (row.is_gone && !row.is_overdue) {
        if (!row.was_missed) await this.set(manager, consumer, eventId, 'missed_at = now()');
        return 'undecided';
      }
      const tries = row.tries + (row.is_gone ? 1 : 0);
      await this.set(manager, consumer, eventId, 'begun_by = $3, missed_at = NULL, tries = $4', [
        this.processId,
        tries,
      ]);
      return tries;
    });
  }

  /**
   * The try has run and failed. Returns how many have, this one included; `taken` if another process has taken the
   * event meanwhile.
   */
  async failed(consumer: string, event: DomainEvent): Promise<number | 'taken'> {
    const [row] = await this.dataSource.query<{ tries: number }[]>(
      `INSERT INTO inbox (${inboxColumns}, tries) VALUES (${inboxParameters}, 1)
       ON CONFLICT (consumer, event_id) DO UPDATE SET tries = inbox.tries + 1, begun_by = NULL, missed_at = NULL
         WHERE inbox.taken_at IS NULL
       RETURNING tries`,
      inboxValues(consumer, event),
    );
    return row ? row.tries : 'taken';
  }

  /**
   * The try was given up by the database, for a statement that took longer than it allows. It counts as failed where
   * `mayCount` and the database is seen to be well: since this event timed out before, a later event of its sequence
   * has had its effect; or it has been waiting for `aloneForMs` and no other event of its consumer times out. Where
   * many do and none gets through, it is no fault of theirs.
   */
  async timedOut(
    consumer: string,
    event: DomainEvent,
    { mayCount, aloneForMs }: { mayCount: boolean; aloneForMs: number },
  ): Promise<{ tries: number; counts: boolean } | 'taken'> {
    const [row] = await this.dataSource.query<{ tries: number; counts: boolean }[]>(
      `WITH verdict AS (
         SELECT EXISTS (
           SELECT FROM (
             SELECT event_id, taken_at FROM inbox WHERE consumer = $1 AND publisher = $3 AND event_name = $4 AND position > $5
             ORDER BY position DESC LIMIT ${latestEvents}
           ) later WHERE taken_at > own.timed_out_at
             AND NOT EXISTS (SELECT FROM dead_letter WHERE dead_letter.consumer = $1 AND dead_letter.event_id = later.event_id)
         ) OR own.received_at < now() - $8 * interval '1 millisecond' AND NOT EXISTS (
           SELECT FROM inbox other WHERE other.consumer = $1 AND other.event_id <> $2 AND other.taken_at IS NULL
             AND other.timed_out_at > now() - interval '${timingOutMinutes} minutes'
         ) AS counts
         FROM inbox own WHERE own.consumer = $1 AND own.event_id = $2 AND own.timed_out_at IS NOT NULL AND $7
       ), counted AS (
         SELECT COALESCE((SELECT counts FROM verdict), false) AS counts
       )
       INSERT INTO inbox (${inboxColumns}, timed_out_at) VALUES (${inboxParameters}, now())
       ON CONFLICT (consumer, event_id) DO UPDATE SET timed_out_at = now(), begun_by = NULL, missed_at = NULL,
         tries = inbox.tries + (SELECT counts::integer FROM counted) WHERE inbox.taken_at IS NULL
       RETURNING tries, (SELECT counts FROM counted) AS counts`,
      [...inboxValues(consumer, event), mayCount, aloneForMs],
    );
    return row ?? 'taken';
  }

  /** The try was cut short by something that is not the event's fault. */
  async interrupted(consumer: string, eventId: string): Promise<void> {
    await this.dataSource.query(
      'UPDATE inbox SET begun_by = NULL WHERE consumer = $1 AND event_id = $2 AND begun_by = $3',
      [consumer, eventId, this.processId],
    );
  }

  private async lock(manager: EntityManager, consumer: string, event: DomainEvent): Promise<Row> {
    await manager.query(
      `INSERT INTO inbox (${inboxColumns}) VALUES (${inboxParameters}) ON CONFLICT DO NOTHING`,
      inboxValues(consumer, event),
    );
    const [row] = await manager.query<Row[]>(
      `SELECT tries, taken_at IS NOT NULL AS is_taken, missed_at IS NOT NULL AS was_missed,
              begun_by IS NOT NULL AND begun_by <> $3 AND pg_try_advisory_xact_lock(${processLock('begun_by')}) AS is_gone,
              COALESCE(missed_at < now() - $4 * interval '1 millisecond', false) AS is_overdue
       FROM inbox WHERE consumer = $1 AND event_id = $2 FOR UPDATE`,
      [consumer, event.id, this.processId, this.goneAfterMs],
    );
    if (!row) throw new Error('The inbox row that this transaction just read is gone.');
    return row;
  }

  private async set(
    manager: EntityManager,
    consumer: string,
    eventId: string,
    assignments: string,
    values: unknown[] = [],
  ): Promise<void> {
    await manager.query(`UPDATE inbox SET ${assignments} WHERE consumer = $1 AND event_id = $2`, [
      consumer,
      eventId,
      ...values,
    ]);
  }
}
