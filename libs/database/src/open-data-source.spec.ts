import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { createDatabase, startPostgres, type TestDatabase, type TestPostgres } from '@atoll/testing';
import pg from 'pg';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { bankOptions, CreateAccounts1790000000000 } from './account-fixture.js';
import { createIndex } from './concurrent-indexes.js';
import { clientOptionsOf, type DatabaseOptions } from './data-source.js';
import { openDataSource, requireDatabase } from './open-data-source.js';

let database: TestDatabase;
let warnings: string[];
const open: DataSource[] = [];

beforeEach(async () => {
  database = await createDatabase();
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => warnings.push(message));
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((dataSource) => dataSource.destroy()));
  await database.drop();
  jest.restoreAllMocks();
});

/** A server that does with each connection what the spec says. */
async function listening(onConnection: (socket: Socket) => void): Promise<{ url: string; close: () => void }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    onConnection(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `postgres://127.0.0.1:${(server.address() as AddressInfo).port}/atoll`, close };
}

async function start(...parameters: Parameters<typeof openDataSource>): Promise<DataSource> {
  const dataSource = await openDataSource(...parameters);
  open.push(dataSource);
  return dataSource;
}

class IndexAccounts1790000000001 implements MigrationInterface {
  readonly name = 'IndexAccounts1790000000001';
  readonly transaction = false;
  async up(queryRunner: QueryRunner): Promise<void> {
    await createIndex(queryRunner, 'CREATE INDEX account_balance ON account (balance_in_cents)');
  }
  async down(): Promise<void> {}
}

class Broken1790000000002 implements MigrationInterface {
  readonly name = 'Broken1790000000002';
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE half (id int)');
    await queryRunner.query('SELECT 1/0');
  }
  async down(): Promise<void> {}
}

class Late1790000000003 implements MigrationInterface {
  readonly name: string = 'Late1790000000003';
  async up(): Promise<void> {}
  async down(): Promise<void> {}
}

class Later1790000000004 extends Late1790000000003 {
  override readonly name = 'Later1790000000004';
}

describe('openDataSource', () => {
  it('lets replicas start at once: each migration runs once, those that lock nothing included', async () => {
    const options = bankOptions(database.url, {
      migrations: [CreateAccounts1790000000000, IndexAccounts1790000000001],
    });
    const [first] = await Promise.all([1, 2, 3, 4].map(() => start(options)));
    expect(await first?.query('SELECT name FROM migration ORDER BY id')).toEqual([
      { name: 'CreateAccounts1790000000000' },
      { name: 'IndexAccounts1790000000001' },
    ]);
  });

  it('needs no lock where nothing is to be migrated, so a start waits for none that migrates', async () => {
    await start(bankOptions(database.url));
    const operator = new pg.Client(database.url);
    await operator.connect();
    await operator.query(`SELECT pg_advisory_lock(hashtextextended('atoll migrations bank', 0))`);
    expect(await (await start(bankOptions(database.url))).query('SELECT name FROM migration')).toHaveLength(1);
    await operator.end();
  });

  it('waits longer for what requests wait longer for, in proportion, and never less than by default', async () => {
    // That of specs is patient with a slow machine.
    const url = database.url.replace(/\?.*/, '');
    const patienceOf = async (options: Partial<DatabaseOptions>) => {
      const dataSource = await start(bankOptions(url, options));
      const { connectionTimeoutMillis: acquireMs, query_timeout: queryMs } = clientOptionsOf(dataSource);
      const [row] = await dataSource.query<{ statement: string }[]>(
        `SELECT current_setting('statement_timeout') AS statement`,
      );
      return { acquireMs, statement: row?.statement, queryMs };
    };
    const byDefault = { acquireMs: 1_500, statement: '2800ms', queryMs: 3_200 };
    expect(await patienceOf({})).toEqual(byDefault);
    expect(await patienceOf({ deadlineMs: 1_000 })).toEqual(byDefault);
    expect(await patienceOf({ deadlineMs: 20_000 })).toEqual({
      acquireMs: 6_000,
      statement: '11200ms',
      queryMs: 12_800,
    });
    expect(await patienceOf({ deadlineMs: 7_000, timeouts: { statementMs: 4_000 } })).toMatchObject({
      statement: '5600ms',
    });
    expect(await patienceOf({ deadlineMs: 20_000, url: `${url}?connect_timeout=7` })).toMatchObject({
      acquireMs: 7_000,
      statement: '11200ms',
    });
  });

  it('finds the tables of its own schema without naming it, and not those of another', async () => {
    const bank = await start(bankOptions(database.url));
    const other = await start({ schema: 'other', url: database.url, entities: [], migrations: [] });
    expect(await bank.query(`SELECT to_regclass('account')::text AS found`)).toEqual([{ found: 'account' }]);
    expect(await other.query(`SELECT to_regclass('account')::text AS found`)).toEqual([{ found: null }]);
  });

  it('says in a line which migrations it has run, and of new tables only how many', async () => {
    const told: unknown[] = [];
    jest.spyOn(Logger.prototype, 'log').mockImplementation((line: unknown) => void told.push(line));
    await start(bankOptions(database.url, { migrations: [CreateAccounts1790000000000, IndexAccounts1790000000001] }));
    await start(bankOptions(database.url, { migrations: [CreateAccounts1790000000000, IndexAccounts1790000000001] }));
    await start(
      bankOptions(database.url, {
        migrations: [CreateAccounts1790000000000, IndexAccounts1790000000001, Late1790000000003, Later1790000000004],
      }),
    );
    expect(told).toEqual([
      'Migrated bank: new tables, by all 2 migrations',
      'Migrated bank: Late1790000000003, Later1790000000004',
    ]);
  });

  it('keeps nothing of a migration that fails, and starts once it is mended', async () => {
    const broken = bankOptions(database.url, { migrations: [CreateAccounts1790000000000, Broken1790000000002] });
    await expect(start(broken)).rejects.toThrow('division by zero');
    const mended = await start(bankOptions(database.url));
    expect(await mended.query(`SELECT to_regclass('account')::text AS account, to_regclass('half') AS half`)).toEqual([
      { account: 'account', half: null },
    ]);
  });

  it('says in one line that a later release has migrated the schema, and which migration it does not know', async () => {
    await start(bankOptions(database.url, { migrations: [CreateAccounts1790000000000, IndexAccounts1790000000001] }));
    expect(warnings).toEqual([]);
    await start(bankOptions(database.url));
    expect(warnings).toEqual([
      expect.stringMatching(
        /^The schema bank is of a later release: this process does not know its migration IndexAccounts1790000000001\. .*dump/,
      ),
    ]);
  });

  it('takes a schema that the operator made for a role that may not make any', async () => {
    const operator = new pg.Client(database.url);
    await operator.connect();
    const { rows } = await operator.query<{ name: string }>('SELECT current_database() AS name');
    await operator.query(`CREATE SCHEMA bank; REVOKE CREATE ON DATABASE ${rows[0]?.name} FROM CURRENT_USER`);
    await operator.end();
    await start(bankOptions(database.url));
  });

  it('says to a user who may not create schemas what to do, before any of several is made', async () => {
    const operator = new pg.Client(database.url);
    await operator.connect();
    const { rows } = await operator.query<{ name: string; role: string }>(
      'SELECT current_database() AS name, quote_ident(current_user) AS role',
    );
    const { name, role } = rows[0] ?? { name: '', role: '' };
    await operator.query(`REVOKE CREATE ON DATABASE ${name} FROM CURRENT_USER`);
    const command = `GRANT CREATE ON DATABASE ${name} TO ${role}`;
    const refusal = new Error(`The user of DATABASE_URL may not create schemas in ${name}: ${command}`);
    await expect(start(bankOptions(database.url))).rejects.toThrow(refusal);
    const require = () => requireDatabase({ url: database.url }, ['public', 'bank'], (line) => warnings.push(line));
    await expect(require()).rejects.toThrow(refusal);
    await operator.query(command);
    await require();
    const { rowCount } = await operator.query(`SELECT FROM pg_namespace WHERE nspname = 'bank'`);
    expect([rowCount, warnings]).toEqual([0, []]);
    await operator.end();
  });

  it('says at once and without the password that a login is refused, a database is missing or an address is invalid', async () => {
    const wrong = new URL(database.url);
    wrong.password = 'sesame';
    const refusal = await start(bankOptions(wrong.href)).catch(String);
    expect(refusal).toMatch(
      /PostgreSQL at 127\.0\.0\.1:\d+\/atoll_test_\w+ cannot be used: password authentication failed/,
    );
    expect(refusal).not.toContain('sesame');
    const missing = new URL(database.url);
    missing.pathname = '/nowhere';
    await expect(start(bankOptions(missing.href))).rejects.toThrow('database "nowhere" does not exist');
    const invalid = await start(bankOptions('postgres://atoll:ses#ame@127.0.0.1/atoll')).catch(String);
    expect(invalid).toMatch(/^Error: DATABASE_URL must be a URL such as .*; percent-encode special characters/);
    expect(invalid).not.toMatch(/ses|ame/);
    expect(warnings).toEqual([]);
  });

  it('ends with the reason of the signal that stops it, while it waits for the next try', async () => {
    let stop = (): void => undefined;
    const requireBank = (options: DatabaseOptions) => requireDatabase(options, ['bank'], () => stop());
    for (const wait of [openDataSource, requireBank]) {
      const stopping = new AbortController();
      stop = () => stopping.abort();
      jest.spyOn(Logger.prototype, 'warn').mockImplementation(stop);
      const waiting = wait(bankOptions('postgres://127.0.0.1:1/atoll', { stopping: stopping.signal }));
      expect(await waiting.catch((error: unknown) => error)).toBe(stopping.signal.reason);
    }
  });

  it('ends with the reason of the signal that stops it, while the server does not answer', async () => {
    const stopping = new AbortController();
    const silent = await listening(() => {
      stopping.abort();
    });
    const timeouts = { acquireMs: 600_000 };
    const opening = start(bankOptions(silent.url, { stopping: stopping.signal, timeouts }));
    expect(await opening.catch((error: unknown) => error)).toBe(stopping.signal.reason);
    silent.close();
  });

  it('leaves no connection open that comes after the signal', async () => {
    const stopping = new AbortController();
    const destroy = jest.spyOn(DataSource.prototype, 'destroy');
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const { hostname, port } = new URL(database.url);
    const slow = await listening((socket) => {
      socket.on('close', end);
      stopping.abort();
      const server = connect(Number(port), hostname).on('error', () => undefined);
      socket.pipe(server).pipe(socket);
    });
    const { pathname, username, password } = new URL(database.url);
    const url = Object.assign(new URL(slow.url), { pathname, username, password }).href;
    const opening = start(bankOptions(url, { stopping: stopping.signal, timeouts: { acquireMs: 600_000 } }));
    expect(await opening.catch((error: unknown) => error)).toBe(stopping.signal.reason);
    await ended;
    // The pool would end it after a while too.
    expect(destroy).toHaveBeenCalledTimes(1);
    slow.close();
  });

  it('gives up after its patience, saying where it looked and why in vain, even if the clock is set meanwhile', async () => {
    const [realNow, nowMs] = [Date.now, Math.ceil(performance.now())];
    const elapsed = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => {
      warnings.push(message);
      jest.spyOn(Date, 'now').mockImplementation(() => realNow() + 3_600_000);
      if (warnings.length === 2) elapsed.mockReturnValue(nowMs + 1_000);
    });
    const start = openDataSource(bankOptions('postgres://atoll:sesame@127.0.0.1:1/atoll'), 1_000);
    await expect(start).rejects.toThrow(
      'PostgreSQL at 127.0.0.1:1/atoll cannot be used: connect ECONNREFUSED 127.0.0.1:1',
    );
    const again = expect.stringContaining('Trying again for 1 s.');
    expect(warnings).toEqual([again, again]);
    expect(warnings.join()).not.toContain('sesame');
  });
});

describe('openDataSource, on a server of its own', () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  it('waits for the server', async () => {
    await server.kill();
    const opening = start(bankOptions(server.url));
    await server.restart();
    await expect((await opening).query('SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
  });

  it('takes the database of the user’s name where the address names none', async () => {
    const url = new URL(server.url);
    url.pathname = '';
    const bank = await start(bankOptions(url.href));
    expect(await bank.query('SELECT current_database() = current_user AS same')).toEqual([{ same: true }]);
  });
});
