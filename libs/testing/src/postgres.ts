import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startEmbeddedPostgres, type EmbeddedPostgres, type EmbeddedPostgresOptions } from '@atoll/database';
import pg from 'pg';
import { projectRoot } from './find-nats-server.js';
import { freePort } from './free-port.js';
import { childrenOf, signal } from './process-tree.js';
import { makeServerFolder, removeServerFolder } from './server-folder.js';
import { timeoutFactor } from './timeout-factor.js';

export interface TestPostgres {
  readonly url: string;
  readonly port: number;
  /** Of the server's main process; another one after `restart`. */
  readonly pid: number;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
  /** Freezes the server with all its sessions: connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** As a power cut: the server is gone at once, its data as it lay. */
  kill(): Promise<void>;
  /** Starts it again on the same data and the same port. */
  restart(): Promise<void>;
}

/** A PostgreSQL of its own, for specs that break it. All others take a database of the shared one: `createDatabase`. */
export async function startPostgres(): Promise<TestPostgres> {
  const dataDir = dataFolder();
  // Of its own, so that nobody has it when the server comes back.
  const port = await freePort();
  let server = await startServer({ dataDir, port });
  const { url } = server;
  // The main process first: one that is stopped or gone starts no further sessions.
  const signalAll = (name: NodeJS.Signals) => {
    const sessions = name === 'SIGKILL' ? childrenOf(server.pid) : [];
    signal(server.pid, name);
    for (const pid of new Set([...sessions, ...childrenOf(server.pid)])) signal(pid, name);
  };
  const kill = async () => {
    signalAll('SIGKILL');
    await server.stop();
  };
  return {
    url,
    port,
    get pid() {
      return server.pid;
    },
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    kill,
    restart: async () => {
      await server.stop();
      server = await startServer({ dataDir, port });
    },
    stop: async () => {
      await kill();
      removeServerFolder(dataDir);
    },
  };
}

/**
 * What a data folder begins with is made once in a checkout: the first spec of a run that needs a database waits for a
 * copy.
 */
async function startServer(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ ...options, fast: true, keptIn: join(await projectRoot(), '.tools', 'postgres') });
}

export interface TestDatabase {
  url: string;
  /** Removes it, whoever is connected. */
  drop(): Promise<void>;
}

/**
 * An empty database for one spec file. Its server is the one of ATOLL_TEST_DATABASE_URL, or one that is started when
 * the first spec of a Jest run asks, shared by all of the run's workers, and gone with the run.
 */
export async function createDatabase(): Promise<TestDatabase> {
  const serverUrl = process.env.ATOLL_TEST_DATABASE_URL ?? (await sharedServer());
  return withClient(serverUrl, (client) => createDatabaseLike(client, serverUrl, 'template1'));
}

/** What many spec files of a run begin with. */
export interface DatabaseTemplate {
  /** A name in SQL that needs no quotes. */
  readonly name: string;
  /** Makes it in an empty database, and leaves no connection to it. */
  make(url: string): Promise<void>;
}

/**
 * A database as the template makes it, for one spec file. It is made once in a Jest run, and copied, which takes a
 * tenth of the time. A server that outlives the run (ATOLL_TEST_DATABASE_URL) keeps no template: it could be of another
 * version of the program.
 */
export async function createDatabaseFrom(template: DatabaseTemplate): Promise<TestDatabase> {
  if (!process.env.ATOLL_TEST_RUN_DIR || process.env.ATOLL_TEST_DATABASE_URL) {
    const database = await createDatabase();
    await template.make(database.url);
    return database;
  }
  const serverUrl = await sharedServer();
  const source = `atoll_template_${template.name}`;
  const isMade = async (client: pg.Client) =>
    (await client.query('SELECT FROM pg_database WHERE datname = $1', [source])).rowCount === 1;
  return withClient(serverUrl, async (client) => {
    if (!(await isMade(client))) {
      // One worker makes it; the others wait.
      await client.query('SELECT pg_advisory_lock(hashtext($1))', [source]);
      if (!(await isMade(client))) await makeTemplate(client, serverUrl, source, template);
      await client.query('SELECT pg_advisory_unlock(hashtext($1))', [source]);
    }
    return createDatabaseLike(client, serverUrl, source);
  });
}

/** Has its name only once it is whole: a worker that dies leaves nothing that others would copy. */
async function makeTemplate(
  client: pg.Client,
  serverUrl: string,
  source: string,
  template: DatabaseTemplate,
): Promise<void> {
  const unfinished = `${source}_${randomBytes(6).toString('hex')}`;
  await client.query(`CREATE DATABASE ${unfinished}`);
  const url = new URL(serverUrl);
  url.pathname = `/${unfinished}`;
  await template.make(url.href);
  await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${source}`);
}

async function createDatabaseLike(client: pg.Client, serverUrl: string, template: string): Promise<TestDatabase> {
  const name = `atoll_test_${randomBytes(6).toString('hex')}`;
  // Page by page through the log, as PostgreSQL does it unless told otherwise, it takes more than twice as much CPU
  // time.
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const url = patient(new URL(serverUrl));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () =>
      withClient(serverUrl, async (admin) => {
        await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      }),
  };
}

/**
 * Connections and statements get several times as long as a service gives them, so that no spec fails because the
 * machine is busy.
 */
function patient(url: URL): URL {
  url.searchParams.set('connect_timeout', String(30 * timeoutFactor));
  url.searchParams.set('statement_timeout', String(14_000 * timeoutFactor));
  url.searchParams.set('query_timeout', String(16_000 * timeoutFactor));
  return url;
}

let ownServer: Promise<EmbeddedPostgres> | undefined;

/** Outside Jest there is no run to share with, and the server ends with this process. */
async function sharedServer(): Promise<string> {
  const runDir = process.env.ATOLL_TEST_RUN_DIR;
  if (runDir) return urlOfRun(join(runDir, 'postgres'));
  ownServer ??= startOwnServer();
  return (await ownServer).url;
}

/** Specs store little; a bench may store more than fits into memory, and is measured on a disk. */
function dataFolder(): string {
  return process.env.JEST_WORKER_ID === undefined ? makeServerFolder(process.pid, tmpdir()) : makeServerFolder();
}

function startOwnServer(): Promise<EmbeddedPostgres> {
  const dataDir = dataFolder();
  process.once('exit', () => removeServerFolder(dataDir));
  return startServer({ dataDir });
}

/**
 * A spec runs most of its statements fewer than five times on any of its connections, and unless told otherwise
 * PostgreSQL plans each of these executions for its values, which took a tenth of the processor time of all specs. A
 * spec that depends on the plan sets `plan_cache_mode` itself.
 */
const planOnce = 'ALTER ROLE CURRENT_USER SET plan_cache_mode = force_generic_plan';

/**
 * The worker that gets the data folder's lock starts the server; the others find its URL in a file. The server belongs
 * to the run, which ends it: a worker that dies takes nothing from the others.
 */
async function urlOfRun(dataDir: string): Promise<string> {
  const file = join(dataDir, 'url');
  for (;;) {
    if (existsSync(file)) return readFileSync(file, 'utf8');
    try {
      const { url } = await startServer({ dataDir, outlivesProcess: true });
      await withClient(url, (client) => client.query(planOnce));
      writeFileSync(`${file}.new`, url);
      renameSync(`${file}.new`, file);
      return url;
    } catch (error) {
      if (!/is in use by process/.test((error as Error).message)) throw error;
      await delay(50);
    }
  }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
