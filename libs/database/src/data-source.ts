import pg from 'pg';
import { AbstractLogger, type DataSource, type DataSourceOptions, type MigrationInterface } from 'typeorm';
import { CallNonce } from './call-nonce.entity.js';
import { readUrl, withoutOptions } from './database-url.js';
import { migrationsOf } from './entity-migrations.js';
import { GuardedClient } from './guarded-client.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { NamingStrategy } from './naming-strategy.js';
import { SplitPool } from './split-pool.js';

type PostgresDataSourceOptions = Extract<DataSourceOptions, { type: 'postgres' }>;
type Class<T> = new () => T;

export interface DatabaseOptions {
  /** The service's own schema. Made at boot if it is missing. */
  schema: string;
  /**
   * `postgres://user:password@host:port/database`, with `sslmode`, `connect_timeout`, `options` and the like as libpq
   * has them.
   */
  url: string;
  /** The tables of idempotency keys and of call nonces are added to them. */
  entities: Class<object>[];
  /** Those that the entities bring (`BringsMigrations`) are added to them. */
  migrations: Class<MigrationInterface>[];
  /** Connections that this process holds at most. Default 10. */
  poolSize?: number;
  /** Connections besides, for work that runs `inBackground`. Default 0: it shares those of `poolSize`. */
  backgroundPoolSize?: number;
  timeouts?: Partial<Timeouts>;
  /**
   * How long a request may take at most. With more than the default, 5000, all timeouts are longer in proportion, but
   * that of the URL.
   */
  deadlineMs?: number;
  /** Ends a start that waits for locks to migrate, with the signal's reason. */
  stopping?: AbortSignal;
  /** Told when a connection of the pool is lost while idle. */
  onConnectionLost?: (error: Error) => void;
}

export interface Timeouts {
  /**
   * To get a connection, new or from the pool. Where it is not given, `connect_timeout` of the URL (seconds) goes
   * before the default.
   */
  acquireMs: number;
  /** A statement, by the server's clock. The server ends it and the connection stays good. 0: none. */
  statementMs: number;
  /**
   * A statement, by the client's clock, for a server that is frozen or unreachable. The connection is destroyed. 0:
   * none.
   */
  queryMs: number;
  /**
   * A migration, for a lock that readers and writers of its table wait behind. Longer than `deadlock_timeout`, 1 s
   * unless set, after which PostgreSQL ends an autovacuum that is in the way. Then it is undone, and tried again after
   * four times as long.
   */
  lockMs: number;
}

const defaultDeadlineMs = 5_000;
/**
 * The first three together are shorter than a request may take by default, so that its caller is told 503 and why, and
 * not 504. While statements wait behind a migration they hold their connections, and who waits for one of those must
 * not give up.
 */
const defaultTimeouts: Timeouts = { acquireMs: 1_500, statementMs: 2_800, queryMs: 3_200, lockMs: 1_200 };

/** A client that died while it held a transaction must not hold its locks for ever. */
const idleInTransactionMs = 20_000;

/**
 * Background work may wait longer for a connection, since nobody waits for it; and a frozen process must not hold up
 * another replica's.
 */
const backgroundOptions = ({ connectionTimeoutMillis = 0 }: pg.PoolConfig): pg.PoolConfig => ({
  connectionTimeoutMillis: Math.max(8_000, connectionTimeoutMillis),
  idle_in_transaction_session_timeout: 4_000,
});

/** What TypeORM takes for pg. */
const driver = Object.create(pg, { Pool: { value: SplitPool } }) as typeof pg;

export function dataSourceOptions(options: DatabaseOptions): PostgresDataSourceOptions {
  const {
    schema,
    entities,
    migrations,
    poolSize = 10,
    backgroundPoolSize = 0,
    onConnectionLost = () => undefined,
  } = options;
  const { url, options: ofUrl } = withoutOptions(options.url);
  const client = clientOptions(options, ofUrl);
  const background = backgroundPoolSize > 0 && { ...backgroundOptions(client), max: backgroundPoolSize };
  return {
    type: 'postgres',
    driver,
    url,
    schema,
    entities: [CallNonce, IdempotencyKey, ...entities],
    migrations: [...migrationsOf(entities), ...migrations],
    migrationsTableName: 'migration',
    migrationsTransactionMode: 'each',
    namingStrategy: new NamingStrategy(),
    applicationName: `atoll-${schema}`,
    installExtensions: false,
    logger: new Silent(),
    poolErrorHandler: onConnectionLost,
    extra: { ...client, max: poolSize, ...(background && { background }) },
  };
}

/** What fails is thrown, and told by whoever catches it; TypeORM's own log would show statements with their values. */
class Silent extends AbstractLogger {
  protected override writeLog(): void {}
}

/** How every connection of a service is made. `ofUrl`: settings that go before its own. */
function clientOptions(options: DatabaseOptions, ofUrl: string): pg.PoolConfig {
  const { acquireMs, statementMs, queryMs } = timeoutsOf(options);
  return {
    Client: GuardedClient,
    connectionTimeoutMillis: acquireMs,
    statement_timeout: statementMs,
    query_timeout: queryMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: [ofUrl, `-c search_path=${searchPathOf(options.schema)}`, ...serverKeepAlive].join(' ').trimStart(),
  };
}

/** Plain SQL finds the service's own tables, and nobody else's; `public` is where extensions live. */
export function searchPathOf(schema: string): string {
  return `${schema},public`;
}

export function timeoutsOf({ url, timeouts, deadlineMs = defaultDeadlineMs }: DatabaseOptions): Timeouts {
  const longer = <T extends Partial<Timeouts>>(given: T): T =>
    Object.fromEntries(
      Object.entries(given).map(([name, ms]) => [name, ms * Math.max(1, deadlineMs / defaultDeadlineMs)]),
    ) as T;
  return { ...longer(defaultTimeouts), ...connectTimeoutOf(url), ...longer(timeouts ?? {}) };
}

function connectTimeoutOf(url: string): Partial<Timeouts> {
  const seconds = Number(readUrl(url)?.searchParams.get('connect_timeout'));
  return seconds > 0 ? { acquireMs: 1_000 * seconds } : {};
}

/**
 * How soon PostgreSQL notices that a client's host has vanished, and lets go of what it held: the lock of a relay or of
 * a migration would otherwise stand in its successor's way for as long as TCP waits, up to two hours. Seconds, and
 * milliseconds for the last.
 */
const serverKeepAlive = [
  '-c tcp_keepalives_idle=10',
  '-c tcp_keepalives_interval=5',
  '-c tcp_keepalives_count=3',
  '-c tcp_user_timeout=20000',
];

/** How the connections of a DataSource are made, for a pool beside its own. */
export function clientOptionsOf(dataSource: DataSource): pg.PoolConfig {
  return { ...(dataSource.options.extra as pg.PoolConfig), connectionString: urlOf(dataSource) };
}

/** The pg pool beneath a DataSource. */
export function poolOf(dataSource: DataSource): pg.Pool {
  const { master } = dataSource.driver as unknown as { master?: pg.Pool };
  if (!master) throw new Error('Driver not Connected');
  return master;
}

/** An entity's table in the service's schema, ready to be put into SQL. */
export function tableOf(dataSource: DataSource, entity: Class<object>): string {
  return `"${schemaOf(dataSource)}"."${dataSource.getMetadata(entity).tableName}"`;
}

export function schemaOf({ options }: DataSource): string {
  return (options as PostgresDataSourceOptions).schema ?? 'public';
}

function urlOf({ options }: DataSource): string {
  return (options as PostgresDataSourceOptions).url ?? '';
}
