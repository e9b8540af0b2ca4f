import type { Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { inboxColumns, inboxParameters, inboxValues } from './inbox-row.js';
import { processLock } from './relay-session.js';

interface Row {
  tries: number;
  is_taken: boolean;
  is_gone: boolean;
  was_missed: boolean;
  is_overdue: boolean;
}

/**
 * Counts the tries of an event by a consumer that ran and failed: by an error, or by the end of the process that ran it.
 * A process that is frozen, or that lost the database or the broker meanwhile, has failed nothing. Whether the process of
 * a try has ended, its lock tells (`RelaySession`): it must be free for a while, since a process that lost its
 * connections takes it again.
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
      await this.set(manager, consumer, eventId, 'begun_by = $3, missed_at = NULL, tries = $4', [this.processId, tries]);
      return tries;
    });
  }

  /** The try has run and failed. Returns how many have, this one included; `taken` if another process has taken the event meanwhile. */
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

  /** The try was cut short by something that is not the event's fault. */
  async interrupted(consumer: string, eventId: string): Promise<void> {
    await this.dataSource.query('UPDATE inbox SET begun_by = NULL WHERE consumer = $1 AND event_id = $2 AND begun_by = $3', [
      consumer,
      eventId,
      this.processId,
    ]);
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
    if (!row) throw new Error('The inbox row is gone that this transaction has just seen.');
    return row;
  }

  private async set(manager: EntityManager, consumer: string, eventId: string, assignments: string, values: unknown[] = []): Promise<void> {
    await manager.query(`UPDATE inbox SET ${assignments} WHERE consumer = $1 AND event_id = $2`, [consumer, eventId, ...values]);
  }
}
