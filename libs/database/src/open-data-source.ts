import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { backOffMs, untilAborted } from '@atoll/waiting';
import { DataSource } from 'typeorm';
import { dataSourceOptions, timeoutsOf, type DatabaseOptions } from './data-source.js';
import { requireServer } from './require-server.js';
import { missingSchemas } from './create-schema.js';
import { errorCodeOf } from './database-errors.js';
import { parseDatabaseUrl, placeOf } from './database-url.js';
import { runMigrations } from './run-migrations.js';

const bootPatienceMs = 30_000;
const bootAcquireMs = 10_000;
const pauses = { firstMs: 100, maxMs: 2_000 };

const logger = new Logger('Database');

/**
 * Waits for PostgreSQL (30 s at most), makes the schema, runs the migrations that are missing, for as long as that
 * takes beside replicas of the release before, and opens the pool. Any number of replicas may do so at once. Warns
 * where a later release has migrated the schema. Throws an Error that says what is wrong and where, without the
 * password; or the reason of `stopping`, if that is aborted meanwhile.
 */
export async function openDataSource(options: DatabaseOptions, patienceMs = bootPatienceMs): Promise<DataSource> {
  const asItIs = await openIfMigrated(options, patienceMs);
  if (asItIs) return asItIs;
  await migrate(options, patienceMs);
  // A new one: TypeORM asks for the schema when it connects.
  return connect(new DataSource(dataSourceOptions(options)), options, patienceMs);
}

/**
 * Waits for PostgreSQL (30 s at most), before any of the schemas is made or migrated. Throws an Error that says what is
 * wrong where it cannot be used, or where its user may not create those of the schemas that are missing; or the reason
 * of `stopping`, if that is aborted meanwhile. `tell` gets a sentence for each try that fails.
 */
export async function requireDatabase(
  { url, stopping }: Pick<DatabaseOptions, 'url' | 'stopping'>,
  schemas: readonly string[],
  tell: (sentence: string) => void,
): Promise<void> {
  const [schema = ''] = schemas;
  const options = { schema, url, entities: [], migrations: [], poolSize: 1, ...(stopping && { stopping }) };
  const dataSource = new DataSource({ ...dataSourceOptions(options), entities: [] });
  await connect(dataSource, options, bootPatienceMs, tell);
  try {
    await requireServer(dataSource, options);
    await missingSchemas(dataSource, schemas);
  } finally {
    await dataSource.destroy();
  }
}

/** Most starts find nothing to migrate: they need no connection but the pool's, and no lock. */
async function openIfMigrated(options: DatabaseOptions, patienceMs: number): Promise<DataSource | undefined> {
  const dataSource = await connect(new DataSource(dataSourceOptions(options)), options, patienceMs);
  try {
    await requireServer(dataSource, options);
    const { missing, unknown } = await compareMigrations(dataSource, options.schema);
    if (unknown !== undefined) logger.warn(newerSchema(options.schema, unknown));
    if (missing === undefined) return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
  await dataSource.destroy();
  return undefined;
}

/**
 * Connects to the schema of a service as it is: creates nothing and migrates nothing, for a command of an operator
 * beside services that run. Waits for nobody. Throws an Error that says what is wrong where PostgreSQL cannot be used,
 * where the schema is missing, and where its migrations are not those of this program. The caller destroys the
 * DataSource.
 */
export async function connectDataSource(options: DatabaseOptions): Promise<DataSource> {
  const dataSource = await connect(new DataSource(dataSourceOptions({ ...options, poolSize: 2 })), options, 0);
  try {
    await requireServer(dataSource, options);
    await requireMigrated(dataSource, options.schema);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}

async function requireMigrated(dataSource: DataSource, schema: string): Promise<void> {
  const { hasTable, missing, unknown } = await compareMigrations(dataSource, schema);
  if (!hasTable) throw new Error(`The database has no schema ${schema} yet: start the service ${schema} once.`);
  if (missing !== undefined) {
    throw new Error(
      `The schema ${schema} is older than this program: ${missing} has not run. Start the service ${schema} of this release first.`,
    );
  }
  if (unknown !== undefined) {
    throw new Error(
      `The schema ${schema} is newer than this program, which has no migration ${unknown}. Run the command from the release that the services run.`,
    );
  }
}

function newerSchema(schema: string, unknown: string): string {
  return (
    `The schema ${schema} is of a later release: this process does not know its migration ${unknown}. It works only beside that ` +
    'release, while an upgrade is under way. To go back to this release, restore the dump that was made before the upgrade.'
  );
}

interface Comparison {
  /** Of migrations, in the schema. */
  hasTable: boolean;
  /** The first migration of this program that has not run. */
  missing: string | undefined;
  /** The first that has run and that this program does not know. */
  unknown: string | undefined;
}

async function compareMigrations(dataSource: DataSource, schema: string): Promise<Comparison> {
  const table = `"${schema}".migration`;
  const [found] = await dataSource.query<{ exists: boolean }[]>('SELECT to_regclass($1) IS NOT NULL AS exists', [
    table,
  ]);
  const rows = found?.exists ? await dataSource.query<{ name: string }[]>(`SELECT name FROM ${table}`) : [];
  const done = new Set(rows.map(({ name }) => name));
  const known = new Set(dataSource.migrations.map(({ name, constructor }) => name ?? constructor.name));
  return {
    hasTable: found?.exists ?? false,
    missing: [...known].find((name) => !done.has(name)),
    unknown: [...done].find((name) => !known.has(name)),
  };
}

async function migrate(options: DatabaseOptions, patienceMs: number): Promise<void> {
  // A migration may take as long as it needs, and no caller waits for its connections. One holds the lock, one
  // migrates.
  const timeouts = { ...options.timeouts, acquireMs: Math.min(patienceMs, bootAcquireMs), statementMs: 0, queryMs: 0 };
  const dataSource = new DataSource({
    ...dataSourceOptions({ ...options, timeouts, deadlineMs: 0, poolSize: 2 }),
    entities: [],
  });
  await connect(dataSource, options, patienceMs);
  try {
    const running = runMigrations(dataSource, options.schema, timeoutsOf(options).lockMs);
    await (options.stopping ? untilAborted(options.stopping, running) : running);
  } finally {
    // Ends the connections, and the lock with them.
    await dataSource.destroy();
  }
}

async function connect(
  dataSource: DataSource,
  { url, stopping = new AbortController().signal }: DatabaseOptions,
  patienceMs: number,
  tell = (sentence: string): void => logger.warn(sentence),
): Promise<DataSource> {
  const place = placeOf(parseDatabaseUrl(url));
  const untilMs = performance.now() + patienceMs;
  for (let failures = 1; ; failures += 1) {
    try {
      return await initialize(dataSource, stopping);
    } catch (error) {
      stopping.throwIfAborted();
      const pauseMs = backOffMs(pauses, failures);
      const sentence = `PostgreSQL at ${place} cannot be used: ${reasonOf(error)}`;
      if (isHopeless(error) || performance.now() + pauseMs > untilMs) throw new Error(sentence, { cause: error });
      tell(`${sentence}. Trying again for ${Math.ceil((untilMs - performance.now()) / 1000)} s.`);
      await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
      stopping.throwIfAborted();
    }
  }
}

/** A connection that comes after the signal is ended again. */
async function initialize(dataSource: DataSource, stopping: AbortSignal): Promise<DataSource> {
  const connected = dataSource.initialize();
  try {
    return await untilAborted(stopping, connected);
  } catch (error) {
    if (stopping.aborted) connected.then(() => dataSource.destroy()).catch(() => undefined);
    throw error;
  }
}

/** A wrong password, or a database that does not exist: waiting will not mend it. */
function isHopeless(error: unknown): boolean {
  return /^(28...|3D000)$/.test(errorCodeOf(error) ?? '');
}

function reasonOf(error: unknown): string {
  // A name with several addresses fails with one error for each and an empty message.
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error as Error];
  return causes.map(({ message }) => message).join('; ');
}
