import type { DataSource } from 'typeorm';
import { searchPathOf, timeoutsOf, type DatabaseOptions } from './data-source.js';
import { parseDatabaseUrl, placeOf } from './database-url.js';

const oldestServer = 150_000;

interface Session {
  number: number;
  version: string;
  search_path: string;
  statement_ms: number;
}

/**
 * Throws an Error that says what to do where PostgreSQL is too old, or where it has not received the start-up
 * parameters of the connection: without its `search_path`, a service would create its tables in `public`.
 */
export async function requireServer(dataSource: DataSource, options: DatabaseOptions): Promise<void> {
  const [session] = await dataSource.query<Session[]>(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
       current_setting('search_path') AS search_path,
       (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::float8 AS statement_ms`,
  );
  if (!session) return;
  if (session.number < oldestServer)
    throw new Error(`PostgreSQL ${session.version} is too old: Atoll needs 15 or newer.`);
  const lost = lostParameter(session, options);
  if (lost === undefined) return;
  throw new Error(
    `PostgreSQL at ${placeOf(parseDatabaseUrl(options.url))} did not receive the start-up parameters of the connection: ${lost}. ` +
      'A pooler such as PgBouncer drops them: set DATABASE_URL to the address of PostgreSQL itself.',
  );
}

function lostParameter(found: Session, options: DatabaseOptions): string | undefined {
  const path = searchPathOf(options.schema);
  if (found.search_path !== path) return `search_path is ${found.search_path}, not ${path}`;
  // pg sends that of the URL in place of ours, and neither where it is 0.
  const ofUrl = parseDatabaseUrl(options.url).searchParams.getAll('statement_timeout').at(-1);
  const sentMs = Number(ofUrl ?? timeoutsOf(options).statementMs);
  // PostgreSQL has whole milliseconds. A URL may have another unit.
  if (!(sentMs > 0) || Math.abs(found.statement_ms - sentMs) < 1) return undefined;
  return `statement_timeout is ${found.statement_ms} ms, not ${sentMs} ms`;
}
