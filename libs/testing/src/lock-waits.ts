import { setTimeout as delay } from 'node:timers/promises';
import { takeTurn } from '@atoll/database';
import type { DataSource, QueryRunner } from 'typeorm';

/**
 * A DataSource, or a service under test. Never the manager of a transaction: in a transaction, PostgreSQL keeps showing
 * the sessions that were there at the first look, and never those that have come since.
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
  /** Ends the wait too, once it settles: what was expected to wait may be answered without. */
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

/**
 * Does `work` in a transaction beside the service's own, as another process that holds locks. What `work` does not
 * commit is rolled back at its end.
 */
export async function inTransactionBeside<T>(
  dataSource: DataSource,
  work: (other: QueryRunner) => Promise<T>,
): Promise<T> {
  const other = dataSource.createQueryRunner();
  await other.connect();
  try {
    await other.startTransaction();
    return await work(other);
  } finally {
    if (other.isTransactionActive) await other.rollbackTransaction();
    await other.release();
  }
}

/**
 * Takes the turn `at` something beside the service, as another replica does, until `work` waits for it or has ended,
 * then lets it go. Returns how many waited, once `work` has ended.
 */
export async function waitersForTurn(
  dataSource: DataSource,
  at: string,
  work: () => Promise<unknown>,
): Promise<number> {
  // In a list, as it is waited for only once the turn is let go.
  const { working, waiters } = await inTransactionBeside(dataSource, async (other) => {
    await takeTurn(other.manager, at);
    const begun = work();
    return { working: [begun], waiters: await untilLockWaits(dataSource, { text: 'advisory', unless: begun }) };
  });
  await Promise.all(working);
  return waiters.length;
}
