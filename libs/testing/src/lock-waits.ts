import { setTimeout as delay } from 'node:timers/promises';

/**
 * A DataSource, or a service under test. Never the manager of a transaction: PostgreSQL shows a transaction the
 * sessions that were there when it looked first, and those that come to wait later for ever not.
 */
interface Looker {
  query(sql: string, values: unknown[]): Promise<unknown>;
}

/** The processes of the sessions of this database that wait for a lock, with a statement that contains this text. */
export async function lockWaits(database: Looker, text = ''): Promise<number[]> {
  const rows = await database.query(
    `SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, $1) > 0`,
    [text],
  );
  return (rows as { pid: number }[]).map(({ pid }) => pid);
}

interface Awaited {
  /** A part of the statement that waits. */
  text?: string;
  /** How many wait. Default 1. */
  count?: number;
  /** What does not come to wait if it settles first. */
  unless?: Promise<unknown>;
}

/** Returns the processes of those that wait; fewer than `count` where `unless` has settled first. */
export async function untilLockWaits(
  database: Looker,
  { text, count = 1, unless = new Promise(() => undefined) }: Awaited = {},
): Promise<number[]> {
  let isSettled = false;
  void Promise.allSettled([unless]).then(() => (isSettled = true));
  for (;;) {
    const found = await lockWaits(database, text);
    if (found.length >= count || isSettled) return found;
    await delay(5);
  }
}
