import { openDataSource, type DatabaseOptions } from '@atoll/database';
import pg from 'pg';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { checkTables, type Migrated } from './migrated.js';

/** Migrations of before this are as they were released. */
const since = 1_870_000_000_000;

interface Existing {
  tables: ReadonlySet<string>;
  /** The table of each index. */
  indexes: ReadonlyMap<string, string>;
}

const instead = '@atoll/database, in a migration with transaction = false';

/** What of a statement of a migration stops those who use a table that the migration did not create. */
export function lockFaults(statement: string, { tables, indexes }: Existing): string[] {
  const created = [
    ...statement.matchAll(
      /\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)(?:.*?\s)?ON\s+(?:ONLY\s+)?(?:"?\w+"?\.)?"?(\w+)/gis,
    ),
  ]
    .map(([, table = '']) => table)
    .filter((table) => tables.has(table))
    .map((table) => `CREATE INDEX stops all who write ${table} until it is built: use createIndex of ${instead}`);
  const dropped = [...statement.matchAll(/\bDROP\s+INDEX\s+(?!CONCURRENTLY)(?:IF\s+EXISTS\s+)?([^;]+)/gi)]
    .flatMap(([, names = '']) => names.match(/\w+/g) ?? [])
    .filter((index) => indexes.has(index))
    .map((index) => `DROP INDEX stops all who use ${indexes.get(index)}: use dropIndex of ${instead}`);
  return [...created, ...dropped];
}

class Crash extends Error {}

/** A crash before one that does not leaves the same tables as a crash before the next one that does. */
function changesTables(statement: string): boolean {
  return !/^\s*(?:SELECT|SET)\b/i.test(statement);
}

/** Runs migrations one by one beside what is there, and looks at what each does. */
class Upgrade {
  readonly faults = new Set<string>();

  constructor(
    private readonly runner: QueryRunner,
    private readonly schema: string,
  ) {}

  async run(migration: MigrationInterface): Promise<void> {
    const existing = await this.existing();
    const tell = (fault: string) => this.faults.add(`${this.schema}: ${migration.name}: ${fault}`);
    const runner = (before: (statement: string) => void = () => undefined) => {
      const query = async (text: string, values?: unknown[]): Promise<unknown> => {
        for (const fault of lockFaults(text, existing)) tell(fault);
        before(text);
        return this.runner.query(text, values);
      };
      return Object.create(this.runner, { query: { value: query } }) as QueryRunner;
    };
    if (migration.transaction === false) await this.inPieces(migration, runner, tell);
    else await this.inTransaction(migration, runner(), existing, tell);
  }

  private async inTransaction(
    migration: MigrationInterface,
    runner: QueryRunner,
    existing: Existing,
    tell: (fault: string) => void,
  ) {
    await this.runner.startTransaction();
    await migration.up(runner);
    const locked = (await this.runner.query(
      `SELECT DISTINCT relname AS name FROM pg_locks JOIN pg_class ON pg_class.oid = relation
       WHERE pid = pg_backend_pid() AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
         AND relkind IN ('r', 'p') AND relname = ANY ($1) ORDER BY 1`,
      [[...existing.tables]],
    )) as { name: string }[];
    if (locked.length > 1) {
      const names = locked.map(({ name }) => name).join(', ');
      tell(
        `locks ${names} together, so that those who use the first wait as long as it takes to get the others: say transaction = false, ` +
          'and write statements that may run again (IF NOT EXISTS)',
      );
    }
    await this.runner.commitTransaction();
  }

  /**
   * Runs it again and again, each time one change of tables further and then broken off, until it comes to its end; and
   * once more after that.
   */
  private async inPieces(
    migration: MigrationInterface,
    runner: (before?: (statement: string) => void) => QueryRunner,
    tell: (fault: string) => void,
  ) {
    const done = new Set<string>();
    let last = 'its end';
    /** Returns whether it was broken off. */
    const oneFurther = async (): Promise<boolean> => {
      const doneBefore = done.size;
      const before = (statement: string) => {
        if (!changesTables(statement) || done.has(statement)) return;
        if (done.size > doneBefore) throw new Crash(statement);
        done.add(statement);
      };
      try {
        await migration.up(runner(before));
        return false;
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        last = error.message;
        return true;
      }
    };
    try {
      while (await oneFurther());
      last = 'its end';
      await migration.up(runner());
    } catch (error) {
      tell(`does not run again after a crash: ${(error as Error).message}. The crash came before ${last}`);
    }
  }

  private async existing(): Promise<Existing> {
    const tables = (await this.runner.query('SELECT tablename AS name FROM pg_tables WHERE schemaname = $1', [
      this.schema,
    ])) as {
      name: string;
    }[];
    const indexes = (await this.runner.query(
      'SELECT indexname AS name, tablename AS "table" FROM pg_indexes WHERE schemaname = $1',
      [this.schema],
    )) as { name: string; table: string }[];
    return {
      tables: new Set(tables.map(({ name }) => name)),
      indexes: new Map(indexes.map(({ name, table }) => [name, table])),
    };
  }
}

/** All that migrations make in a schema, a line each. */
async function shapeOf(dataSource: DataSource, schema: string): Promise<string[]> {
  const rows = await dataSource.query<{ line: string }[]>(
    `SELECT indexdef AS line FROM pg_indexes WHERE schemaname = $1
     UNION ALL SELECT concat_ws(' ', 'column', table_name, column_name, udt_name, datetime_precision, is_nullable, column_default)
       FROM information_schema.columns WHERE table_schema = $1
     UNION ALL SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = $1::regnamespace
     UNION ALL SELECT pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
       WHERE relnamespace = $1::regnamespace AND NOT tgisinternal
     UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace`,
    [schema],
  );
  return rows.map(({ line }) => line);
}

/**
 * Runs the newer migrations of a service one by one on the empty database at `url`, after the older ones, as an upgrade
 * does beside replicas of the release before: none may stop them, those without a transaction may be run again after
 * any crash, and all end in the tables of `fresh`, which a first start has made.
 */
export async function upgradeFaults(
  options: Pick<DatabaseOptions, 'schema' | 'url'>,
  fresh: DataSource,
): Promise<string[]> {
  const timeOf = ({ name = '' }: MigrationInterface) => Number(name.slice(-13));
  const all = fresh.migrations.toSorted((one, other) => timeOf(one) - timeOf(other));
  const older = all
    .filter((each) => timeOf(each) < since)
    .map(({ constructor }) => constructor as new () => MigrationInterface);
  const dataSource = await openDataSource({ ...options, entities: [], migrations: older, poolSize: 2 });
  try {
    const runner = dataSource.createQueryRunner();
    const upgrade = new Upgrade(runner, options.schema);
    for (const migration of all.slice(older.length)) await upgrade.run(migration);
    await runner.release();
    const upgraded = await shapeOf(dataSource, options.schema);
    const first = await shapeOf(fresh, options.schema);
    return [
      ...upgrade.faults,
      ...first
        .filter((line) => !upgraded.includes(line))
        .map((line) => `${options.schema}: an upgrade does not end in ${line}`),
      ...upgraded
        .filter((line) => !first.includes(line))
        .map((line) => `${options.schema}: a first start does not end in ${line}`),
    ];
  } finally {
    await dataSource.destroy();
  }
}

export async function upgrade({ service, dataSource, url }: Migrated): Promise<string[]> {
  const own = new URL(url);
  own.pathname = `/upgrade_${service.name.replaceAll('-', '_')}`;
  const client = new pg.Client(url);
  await client.connect();
  // Of `createDatabase` in libs/testing, which says why.
  await client.query(`CREATE DATABASE ${own.pathname.slice(1)} STRATEGY file_copy`);
  await client.end();
  return upgradeFaults({ schema: service.name, url: own.href }, dataSource);
}

/** Of the services that are named on the command line; of all, where none is. */
if (import.meta.main) await checkTables([upgrade], process.argv.slice(2));
