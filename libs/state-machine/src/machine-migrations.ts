import { createIndex, dropIndex } from '@atoll/database';
import type { QueryRunner } from 'typeorm';

/**
 * Columns for CREATE TABLE, as of the first release. Frozen, since released migrations use it: `addLanes` adds the
 * rest.
 */
export const machineColumns = `state text NOT NULL,
    entered_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    deadline_at timestamptz(3),
    due_at timestamptz(3),
    attempts integer NOT NULL DEFAULT 0,
    last_error jsonb,
    claim_token uuid,
    claimed_until timestamptz(3),
    revision integer NOT NULL DEFAULT 0,
    request_id text`;

/** The index that workers of the first release claimed by. Frozen: `addLanes` replaces it. */
export function dueIndex(table: string): string {
  return `CREATE INDEX ${table}_due ON ${table} (due_at) WHERE due_at IS NOT NULL`;
}

/**
 * Names of the indexes that `addLanes` creates; an entity declares `parked` and `deadline` by
 * `@MachineIndexes('<table>')`, and `addRestIndexes` replaces the others. All of them are partial: rows that need no
 * work are in none of them.
 */
export const indexesOf = (table: string) => ({
  /** Due rows that have not failed in their state, by lane. */
  fresh: `${table}_fresh`,
  /** Due rows that have failed before, by lane. */
  retried: `${table}_retried`,
  parked: `${table}_parked`,
  deadline: `${table}_deadline`,
});

/** For migrations: adds lanes, and the indexes that workers claim by, to a table with `machineColumns`. */
export async function addLanes(runner: QueryRunner, table: string): Promise<void> {
  const { fresh, retried, parked, deadline } = indexesOf(table);
  await runner.query(
    `ALTER TABLE ${table} ADD lane text NOT NULL DEFAULT '', ADD further_lanes text[] NOT NULL DEFAULT '{}', ADD parked_until timestamptz(3)`,
  );
  await runner.query(
    `UPDATE ${table} SET parked_until = due_at, due_at = NULL WHERE due_at > clock_timestamp() AND claim_token IS NULL`,
  );
  await runner.query(`DROP INDEX ${table}_due`);
  await runner.query(`CREATE INDEX ${fresh} ON ${table} (lane, due_at) WHERE due_at IS NOT NULL AND attempts = 0`);
  await runner.query(`CREATE INDEX ${retried} ON ${table} (lane, due_at) WHERE due_at IS NOT NULL AND attempts > 0`);
  await runner.query(`CREATE INDEX ${parked} ON ${table} (parked_until) WHERE parked_until IS NOT NULL`);
  await runner.query(`CREATE INDEX ${deadline} ON ${table} (deadline_at) WHERE deadline_at IS NOT NULL`);
}

/** For migrations: reverts `addLanes`. */
export async function dropLanes(runner: QueryRunner, table: string): Promise<void> {
  for (const index of Object.values(indexesOf(table))) await runner.query(`DROP INDEX ${index}`);
  await runner.query(`UPDATE ${table} SET due_at = parked_until WHERE parked_until IS NOT NULL`);
  await runner.query(`ALTER TABLE ${table} DROP lane, DROP further_lanes, DROP parked_until`);
  await runner.query(dueIndex(table));
}

/**
 * In SQL: 1 if a row is at rest, otherwise 0. That is a row without a deadline: its step looks at it again, or it waits
 * for another row, which touches it.
 */
export const restSql = 'num_nulls(deadline_at)';

/** Names of the indexes that `addRestIndexes` creates; an entity declares them by `@MachineIndexes('<table>')`. */
export const restIndexesOf = (table: string) => ({
  /** Due rows that have not failed in their state, those at rest apart from the others, by lane. */
  fresh: `${table}_fresh_by_rest`,
  /** Due rows that have failed before, in the same order. */
  retried: `${table}_retried_by_rest`,
});

/**
 * For migrations, with `transaction = false`: has due rows that are at rest apart from the others in the indexes that
 * workers claim by. Those of the release before read all due rows of either kind for a lane until they end.
 */
export async function addRestIndexes(runner: QueryRunner, table: string): Promise<void> {
  const { fresh, retried } = restIndexesOf(table);
  const columns = `(${restSql}, lane, due_at) WHERE due_at IS NOT NULL`;
  await createIndex(runner, `CREATE INDEX ${fresh} ON ${table} ${columns} AND attempts = 0`);
  await createIndex(runner, `CREATE INDEX ${retried} ON ${table} ${columns} AND attempts > 0`);
  await dropIndex(runner, indexesOf(table).fresh);
  await dropIndex(runner, indexesOf(table).retried);
}

/** For migrations: reverts `addRestIndexes`. */
export async function dropRestIndexes(runner: QueryRunner, table: string): Promise<void> {
  const { fresh, retried } = indexesOf(table);
  await createIndex(
    runner,
    `CREATE INDEX ${fresh} ON ${table} (lane, due_at) WHERE due_at IS NOT NULL AND attempts = 0`,
  );
  await createIndex(
    runner,
    `CREATE INDEX ${retried} ON ${table} (lane, due_at) WHERE due_at IS NOT NULL AND attempts > 0`,
  );
  for (const index of Object.values(restIndexesOf(table))) await dropIndex(runner, index);
}

/** In SQL: the process has failed. The states in which one has are named `failed` or `<what>_failed`. */
export const failedState = `state LIKE '%failed'`;

/** The index of failed rows; an entity declares it by `@MachineIndexes('<table>')`. */
export const failedIndexOf = (table: string) => `${table}_failed`;

/**
 * For migrations, with `transaction = false`: adds the index by which failed rows are found among any number of others.
 */
export async function addFailedIndex(runner: QueryRunner, table: string): Promise<void> {
  await createIndex(runner, `CREATE INDEX ${failedIndexOf(table)} ON ${table} (entered_at) WHERE ${failedState}`);
}

/** For migrations: reverts `addFailedIndex`. */
export async function dropFailedIndex(runner: QueryRunner, table: string): Promise<void> {
  await runner.query(`DROP INDEX ${failedIndexOf(table)}`);
}

/** The index of parked rows that have failed in their state; an entity declares it by `@MachineIndexes('<table>')`. */
export const parkedRetriedIndexOf = (table: string) => `${table}_parked_retried`;

/**
 * For migrations, with `transaction = false`: adds the index by which parked rows that have failed are found among any
 * number of those that are only parked.
 */
export async function addParkedRetriedIndex(runner: QueryRunner, table: string): Promise<void> {
  await createIndex(
    runner,
    `CREATE INDEX ${parkedRetriedIndexOf(table)} ON ${table} (parked_until) WHERE parked_until IS NOT NULL AND attempts > 0`,
  );
}

/** For migrations: reverts `addParkedRetriedIndex`. */
export async function dropParkedRetriedIndex(runner: QueryRunner, table: string): Promise<void> {
  await runner.query(`DROP INDEX ${parkedRetriedIndexOf(table)}`);
}
