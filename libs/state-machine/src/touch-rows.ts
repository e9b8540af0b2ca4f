import type { EntityManager } from 'typeorm';
import { signalAfterCommit } from './due-signals.js';
import type { MachineRow } from './machine-row.js';
import type { Machine } from './machine-table.js';
import { statement, type Statement } from './statement.js';

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
  const key = primaryColumns[0]?.databaseName ?? '';
  const { text, values } = touchSql({ table, key }, { keys, states: states ?? null });
  await manager.query(text, values);
  signalAfterCommit(manager, table);
}

export function touchSql(
  { table, key }: { readonly table: string; readonly key: string },
  given: { readonly keys: readonly string[]; readonly states: readonly string[] | null },
): Statement {
  // A waiting row keeps its place in the lane. A claimed row gets a new instant, which tells its worker about the
  // touch; also where the claim has run out, since its step may end before another worker takes the row over.
  return statement(
    given,
    (at) => `UPDATE ${table} SET parked_until = NULL, due_at = CASE
      WHEN due_at IS NULL OR due_at > clock_timestamp() THEN clock_timestamp()
      WHEN claimed_until > clock_timestamp() THEN GREATEST(clock_timestamp(), due_at + interval '1 millisecond')
      WHEN claim_token IS NOT NULL THEN due_at + interval '1 millisecond'
      ELSE due_at END
    WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE ${key} = ANY (${at.keys}) AND (${at.states}::text[] IS NULL OR state = ANY (${at.states})) FOR NO KEY UPDATE SKIP LOCKED
    )`,
  );
}
