import type { EntityManager } from 'typeorm';
import { ringAfterCommit } from './bells.js';
import type { MachineRow } from './machine-row.js';
import type { Machine } from './machine-table.js';

/**
 * Makes rows of a machine due, or those of them that are in `states`. If the step of a row is running, it runs again
 * afterwards. Rows that another transaction has locked are skipped rather than waited for; a `sweep` or the next poll
 * of the step finds what was missed.
 */
export async function touchRows<Row extends MachineRow, State extends string>(
  manager: EntityManager,
  { entity }: Machine<Row, State>,
  keys: readonly string[],
  states?: readonly State[],
): Promise<void> {
  if (keys.length === 0) return;
  const { tableName: table, primaryColumns } = manager.connection.getMetadata(entity);
  await manager.query(touchSql({ table, key: primaryColumns[0]?.databaseName ?? '' }), [keys, states ?? null]);
  ringAfterCommit(manager, table);
}

/** $1 keys, $2 states or null. */
export function touchSql({ table, key }: { readonly table: string; readonly key: string }): string {
  // A waiting row keeps its place in the lane. A claimed row gets a new instant, which tells its worker about the
  // touch; also where the claim has run out, since its step may end before another worker takes the row over.
  return `UPDATE ${table} SET parked_until = NULL, due_at = CASE
      WHEN due_at IS NULL OR due_at > clock_timestamp() THEN clock_timestamp()
      WHEN claimed_until > clock_timestamp() THEN GREATEST(clock_timestamp(), due_at + interval '1 millisecond')
      WHEN claim_token IS NOT NULL THEN due_at + interval '1 millisecond'
      ELSE due_at END
    WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE ${key} = ANY ($1) AND ($2::text[] IS NULL OR state = ANY ($2)) FOR NO KEY UPDATE SKIP LOCKED
    )`;
}
