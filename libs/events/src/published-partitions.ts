import type { QueryRunner } from 'typeorm';

/** How long a publisher keeps its published events, and a consumer the ids of handled ones. */
export const retentionDays = 7;
/** Spare partitions in addition to today's, in case none can be created for a while. */
const daysAhead = 2;
const lockNotAvailable = '55P03';

/** SQL: moves the events $1 from the outbox to what was published. */
export const keepPublished = `
  WITH done AS (DELETE FROM outbox WHERE id = ANY($1) RETURNING *)
  INSERT INTO outbox_published (position, previous, id, event_name, payload, request_id, traceparent, occurred_at)
  SELECT position, previous, id, event_name, payload, request_id, traceparent, occurred_at FROM done WHERE position IS NOT NULL`;

/**
 * Creates the partitions of today and the next days (UTC), and drops those whose last event is older than
 * `retentionDays`. Somebody who reads for long, as a backup does, hinders neither the relay nor the making; what cannot
 * be dropped meanwhile is dropped later.
 */
export async function renewPartitions(runner: QueryRunner): Promise<void> {
  const wanted = (await runner.query(
    `SELECT to_char(day, 'YYYYMMDD') AS name, day::text AS "from", (day + 1)::text AS "to"
     FROM (SELECT (now() AT TIME ZONE 'UTC')::date + n AS day FROM generate_series(0, $1::int) AS n) AS days`,
    [daysAhead],
  )) as { name: string; from: string; to: string }[];
  const found = (await runner.query(
    `SELECT relname AS name, relname < 'outbox_published_' || to_char(now() AT TIME ZONE 'UTC' - $1 * interval '1 day', 'YYYYMMDD') AS "isOld"
     FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = to_regclass(quote_ident(current_schema()) || '.outbox_published')`,
    [retentionDays],
  )) as { name: string; isOld: boolean }[];
  for (const { name, from, to } of wanted) {
    const partition = `outbox_published_${name}`;
    if (found.some((each) => each.name === partition)) continue;
    // To attach waits for no reader; PARTITION OF would.
    await runner.query(`CREATE TABLE IF NOT EXISTS ${partition} (LIKE outbox_published INCLUDING DEFAULTS)`);
    await runner.query(
      `ALTER TABLE outbox_published ATTACH PARTITION ${partition} FOR VALUES FROM ('${from} 00:00+00') TO ('${to} 00:00+00')`,
    );
  }
  const old = found.filter(({ isOld }) => isOld);
  if (old.length > 0)
    await dropUnlessRead(
      runner,
      old.map(({ name }) => name),
    );
}

async function dropUnlessRead(runner: QueryRunner, partitions: readonly string[]): Promise<void> {
  // Others wait behind a drop that waits for readers: no longer than this.
  await runner.query(`SET lock_timeout = '500ms'`);
  try {
    for (const name of partitions) await runner.query(`DROP TABLE ${name}`);
  } catch (error) {
    if ((error as { driverError?: { code?: unknown } }).driverError?.code !== lockNotAvailable) throw error;
  } finally {
    await runner.query('RESET lock_timeout');
  }
}
