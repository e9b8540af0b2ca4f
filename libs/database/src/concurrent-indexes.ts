import type { QueryRunner } from 'typeorm';

/**
 * For migrations: creates an index on a table that exists, while others read and write it. Takes the whole statement,
 * `CREATE [UNIQUE] INDEX <name> ON <table> …`. The migration says `transaction = false` and may be run again after a
 * crash at any point: an index that is there stays, and one that a crash left half made is made again. In the one
 * transaction of a first start it is created plainly. Waits for as long as older transactions last, and nobody waits
 * behind it. Throws an Error where the statement has another form.
 */
export async function createIndex(runner: QueryRunner, statement: string): Promise<void> {
  const [, unique = '', name = '', rest = ''] = /^CREATE (UNIQUE )?INDEX (\w+) (ON .+)$/s.exec(statement) ?? [];
  if (!name) throw new Error(`Expected CREATE [UNIQUE] INDEX <name> ON <table> …, not: ${statement}`);
  if (runner.isTransactionActive)
    return void (await runner.query(`CREATE ${unique}INDEX IF NOT EXISTS ${name} ${rest}`));
  const [found] = (await runner.query(
    'SELECT indisvalid AS "isValid" FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relname = $1 AND relnamespace = current_schema()::regnamespace',
    [name],
  )) as { isValid: boolean }[];
  if (found?.isValid) return;
  if (found) await dropIndex(runner, name);
  await patiently(runner, `CREATE ${unique}INDEX CONCURRENTLY ${name} ${rest}`);
}

/**
 * For migrations: drops an index by its name, as `createIndex` creates one: while others read and write its table, and
 * again after a crash. What takes its place is created before.
 */
export async function dropIndex(runner: QueryRunner, name: string): Promise<void> {
  if (runner.isTransactionActive) await runner.query(`DROP INDEX IF EXISTS ${name}`);
  else await patiently(runner, `DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
}

/** Without the lock timeout of migrations: what waits here is in nobody's way. */
async function patiently(runner: QueryRunner, statement: string): Promise<void> {
  const [before] = (await runner.query(`SELECT current_setting('lock_timeout') AS "lockTimeout"`)) as {
    lockTimeout: string;
  }[];
  await runner.query('SET lock_timeout = 0');
  await runner.query(statement);
  await runner.query(`SELECT set_config('lock_timeout', $1, false)`, [before?.lockTimeout]);
}
