/** A table of rows that workers claim. */
export interface Table {
  readonly table: string;
  readonly key: string;
  /** SQL expression for whose a row is, if owners take turns in a lane. */
  readonly owner?: string | null;
  /** SQL condition for rows that are begun without room. */
  readonly urgent?: string | null;
}

/**
 * Turns are taken among so many rows of a kind, those that are due for longest, and as many that became due last: so
 * many are read of any number, and what becomes due is in sight at once.
 */
export const inSight = 1_000;

/** Condition for rows without a valid claim. */
export const unclaimed = '(claimed_until IS NULL OR claimed_until <= (SELECT now FROM clock))';

/**
 * Condition for rows in states that the worker's definition has: those of a later release belong to its workers.
 * Written so that the planner expects it to hold for nearly all rows, and reads them in the order of an index only as
 * far as needed.
 */
export const known = (states: string) => `array_position(${states}::text[], state) IS NOT NULL`;

/** Rounded as the columns are, which may be up: what was due when it was written is due for every look after that. */
export const clock = 'clock AS MATERIALIZED (SELECT clock_timestamp()::timestamptz(3) AS now)';
