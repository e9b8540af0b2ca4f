import type { EntityManager } from 'typeorm';
import { ringAfterCommit } from './bells.js';
import type { MachineRow } from './machine-row.js';
import type { Machine } from './machine-table.js';

/**
 * Has workers look at these rows of a machine now, or at those of them that are in `states`; one whose step is under
 * way is looked at again after it. Rows that another transaction has locked are left out, so that nothing is waited
 * for: what is overlooked by that, a `sweep` or the next look finds.
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
  // A row that waits in its lane keeps its place. One that is claimed gets another instant, by which its worker sees that there is something new.
  return `UPDATE ${table} SET parked_until = NULL, due_at = CASE
      WHEN due_at IS NULL OR due_at > clock_timestamp() THEN clock_timestamp()
      WHEN claimed_until > clock_timestamp() THEN GREATEST(clock_timestamp(), due_at + interval '1 millisecond')
      ELSE due_at END
    WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE ${key} = ANY ($1) AND ($2::text[] IS NULL OR state = ANY ($2)) FOR NO KEY UPDATE SKIP LOCKED
    )`;
}
