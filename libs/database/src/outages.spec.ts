import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { isAppError } from '@atoll/errors';
import { startPostgres, timeoutFactor, type TestPostgres } from '@atoll/testing';
import type { DataSource } from 'typeorm';
import { Account, bankOptions } from './account-fixture.js';
import { poolOf, type DatabaseOptions } from './data-source.js';
import { isOutdated } from './database-errors.js';
import { DatabaseStatus } from './database-status.js';
import { onceAvailable } from './once-available.js';
import { openConnections } from './open-connections.js';
import { openDataSource } from './open-data-source.js';
import { Statements } from './statements.js';
import { Transactions } from './transactions.js';

let server: TestPostgres;
const open: DataSource[] = [];
const lost: Error[] = [];

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(() => {
  lost.length = 0;
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((dataSource) => dataSource.destroy()));
});

async function bank(options: Partial<DatabaseOptions> = {}): Promise<DataSource> {
  const patient = { deadlineMs: 5_000 * timeoutFactor, onConnectionLost: (error: Error) => lost.push(error) };
  const dataSource = await openDataSource(bankOptions(server.url, { ...patient, ...options }));
  open.push(dataSource);
  return dataSource;
}

const insert = (transactions: Transactions, name: string) =>
  transactions.run((manager) => manager.insert(Account, { name, balanceInCents: 0 }));
const names = async (dataSource: DataSource) =>
  (await dataSource.getRepository(Account).find({ order: { name: 'ASC' } })).map(({ name }) => name);
const unavailable = { code: 'unavailable', details: { retryAfterSeconds: 2 } };

/** Asks until the database answers again. Any other failure than `unavailable` ends it. */
async function recovery(statements: Statements): Promise<void> {
  for (;;) {
    try {
      await statements.query('SELECT 1', []);
      return;
    } catch (error) {
      if (!isAppError(error)) throw error;
    }
  }
}

/** A machine that is busy may take longer than the second in which it answers. */
async function untilReady(status: DatabaseStatus): Promise<void> {
  while (await status.fault());
}

describe('when the server dies', () => {
  it('a transaction under way is unavailable and leaves nothing; with the server the service is back by itself', async () => {
    const dataSource = await bank();
    const transactions = new Transactions(dataSource);
    await insert(transactions, 'before');
    const work = transactions.run(async (manager) => {
      await manager.insert(Account, { name: 'during', balanceInCents: 0 });
      await server.kill();
      await manager.insert(Account, { name: 'during too', balanceInCents: 0 });
    });
    await expect(work).rejects.toMatchObject(unavailable);
    await expect(insert(transactions, 'while down')).rejects.toMatchObject(unavailable);
    await server.restart();
    await recovery(new Statements(dataSource));
    await insert(transactions, 'after');
    expect(await names(dataSource)).toEqual(['after', 'before']);
  });

  it('what a service reads as it starts is read once the server is back', async () => {
    const dataSource = await bank();
    await server.kill();
    let tries = 0;
    const read = onceAvailable(() => {
      tries += 1;
      return names(dataSource);
    });
    await server.restart();
    expect(await read).toContain('before');
    expect(tries).toBeGreaterThan(1);
  });

  it('idle connections are thrown away and told of, and end nothing', async () => {
    const dataSource = await bank();
    const pool = poolOf(dataSource);
    await Promise.all([1, 2, 3].map(() => dataSource.query('SELECT pg_sleep(0.05)')));
    expect(pool.idleCount).toBe(3);
    const threeLost = new Promise<void>((resolve) => pool.on('remove', () => pool.totalCount === 0 && resolve()));
    await server.kill();
    await threeLost;
    expect(lost).toHaveLength(3);
    await server.restart();
    await recovery(new Statements(dataSource));
  });

  it('readiness says so within its second, and says when it is back', async () => {
    const dataSource = await bank();
    const status = new DatabaseStatus(dataSource);
    await untilReady(status);
    await server.kill();
    expect(await status.fault()).toBe('PostgreSQL does not answer.');
    await server.restart();
    await untilReady(status);
    server.pause();
    expect(await status.fault()).toBe('PostgreSQL does not answer.');
    server.resume();
    await untilReady(status);
    await status.onApplicationShutdown();
  });
});

describe('when the server is frozen', () => {
  /** Enough for what is asked while it is not frozen; in proportion to the deadline. */
  const timeouts = { acquireMs: 1_000, statementMs: 700, queryMs: 1_000 };

  it('a call is unavailable after the query timeout, and its connection is never used again', async () => {
    const dataSource = await bank({ timeouts });
    const statements = new Statements(dataSource);
    const transactions = new Transactions(dataSource);
    await recovery(statements);
    server.pause();
    await expect(insert(transactions, 'on a connection of the pool')).rejects.toMatchObject(unavailable);
    expect(poolOf(dataSource).totalCount).toBe(0);
    await expect(statements.query('SELECT 1', [])).rejects.toMatchObject(unavailable);
    server.resume();
    await recovery(statements);
    const answers = await Promise.all(
      [1, 2, 3, 4].map((number) => onceAvailable(() => statements.query('SELECT $1::int AS number', [number]))),
    );
    expect(answers).toEqual([1, 2, 3, 4].map((number) => [{ number }]));
  });

  it('a process that opens its connections goes on without them, and opens them when they are needed', async () => {
    const dataSource = await bank({ timeouts });
    server.pause();
    await openConnections(dataSource);
    const { idleCount } = poolOf(dataSource);
    server.resume();
    // The one that it had.
    expect(idleCount).toBe(1);
    await recovery(new Statements(dataSource));
    // A machine that is busy may take longer than the timeouts for some of them.
    while (poolOf(dataSource).idleCount < 10) await openConnections(dataSource);
  });

  it('what a service reads as it starts is read once the server thaws', async () => {
    const dataSource = await bank({ timeouts });
    await onceAvailable(() => insert(new Transactions(dataSource), 'read'));
    server.pause();
    const triedAgain = Promise.withResolvers<void>();
    let tries = 0;
    const read = onceAvailable(() => {
      tries += 1;
      if (tries > 1) triedAgain.resolve();
      return names(dataSource);
    });
    await triedAgain.promise;
    server.resume();
    expect(await read).toContain('read');
  });

  it('a transaction under way is rolled back once the server thaws', async () => {
    const dataSource = await bank({ timeouts });
    const transactions = new Transactions(dataSource);
    const work = transactions.run(async (manager) => {
      await manager.insert(Account, { name: 'frozen', balanceInCents: 0 });
      server.pause();
      await manager.insert(Account, { name: 'frozen too', balanceInCents: 0 });
    });
    await expect(work).rejects.toMatchObject(unavailable);
    server.resume();
    await recovery(new Statements(dataSource));
    await onceAvailable(() => insert(transactions, 'frozen'));
    expect(await onceAvailable(() => names(dataSource))).toContain('frozen');
  });
});

describe('when the server is frozen while the service stops', () => {
  it('the service stops all the same', async () => {
    const dataSource = await bank();
    server.pause();
    await expect(dataSource.destroy()).resolves.toBeUndefined();
    open.length = 0;
    server.resume();
  });
});

describe('when the pool is exhausted', () => {
  it('a call is unavailable after the time to acquire, and the pool is whole afterwards', async () => {
    const dataSource = await bank({ poolSize: 1, timeouts: { acquireMs: 500 } });
    const transactions = new Transactions(dataSource);
    const statements = new Statements(dataSource);
    await transactions.run(async () => {
      await expect(statements.query('SELECT 1', [])).rejects.toMatchObject(unavailable);
      await expect(insert(transactions, 'too many')).rejects.toMatchObject(unavailable);
    });
    await expect(statements.query('SELECT 1 AS one', [])).resolves.toEqual([{ one: 1 }]);
  });

  it('readiness does not take that for a dead database', async () => {
    const dataSource = await bank({ poolSize: 1 });
    const status = new DatabaseStatus(dataSource);
    await new Transactions(dataSource).run(() => untilReady(status));
    await status.onApplicationShutdown();
  });
});

describe('a statement', () => {
  it('over its time is ended by the server, and the connection stays good', async () => {
    const dataSource = await bank({ poolSize: 1, timeouts: { statementMs: 500 } });
    const transactions = new Transactions(dataSource);
    const run = (sql: string) => transactions.run((manager) => manager.query<object[]>(sql));
    const before = await run('SELECT pg_backend_pid() AS pid');
    await expect(run('SELECT pg_sleep(10)')).rejects.toMatchObject(unavailable);
    expect(await run('SELECT pg_backend_pid() AS pid')).toEqual(before);
  });

  it('that is a mistake is thrown as it is', async () => {
    await expect(new Statements(await bank()).query('SELECT nothing', [])).rejects.toMatchObject({
      code: '42703',
    });
  });

  it('is prepared the first time, and once for each text', async () => {
    const dataSource = await bank({ poolSize: 1 });
    const texts = ['SELECT $1::int AS one', 'SELECT $1::int AS two'];
    for (const text of [...texts, ...texts]) await new Statements(dataSource).query(text, [1]);
    expect(await dataSource.query('SELECT statement FROM pg_prepared_statements ORDER BY statement')).toEqual(
      texts.map((statement) => ({ statement })),
    );
  });

  it('whose table a migration has changed is planned anew', async () => {
    const dataSource = await bank({ poolSize: 1 });
    const statements = new Statements(dataSource);
    await dataSource.query('CREATE TABLE changing AS SELECT 1 AS one');
    expect(await statements.query('SELECT * FROM changing', [])).toEqual([{ one: 1 }]);
    await dataSource.query('ALTER TABLE changing ADD COLUMN two int DEFAULT 2');
    expect(await statements.query('SELECT * FROM changing', [])).toEqual([{ one: 1, two: 2 }]);
  });

  it('is known to be out of date whatever the language of the server', () => {
    const refusal = { code: '0A000', routine: 'RevalidateCachedQuery' };
    expect(isOutdated(Object.assign(new Error('gecachter Plan darf den Ergebnistyp nicht ändern'), refusal))).toBe(
      true,
    );
    const another = { code: '0A000', routine: 'transformLockingClause' };
    expect(isOutdated(Object.assign(new Error('FOR UPDATE ist nicht erlaubt mit DISTINCT'), another))).toBe(false);
  });
});

describe('when the server became read-only, as a primary that stepped down', () => {
  it('a change is unavailable and its connection is given up, so that the next one may find the new primary', async () => {
    const dataSource = await bank({ poolSize: 1 });
    const transactions = new Transactions(dataSource);
    const status = new DatabaseStatus(dataSource);
    const turn = async (setting: 'on' | 'off') => {
      await dataSource.query(`SET default_transaction_read_only = off`);
      await dataSource.query(`ALTER ROLE CURRENT_USER SET default_transaction_read_only = ${setting}`);
      await dataSource.query(`SET default_transaction_read_only = ${setting}`);
    };
    await turn('on');
    await expect(insert(transactions, 'read-only')).rejects.toMatchObject(unavailable);
    expect(poolOf(dataSource).totalCount).toBe(0);
    // A machine that is busy may take longer than the second in which it answers.
    while ((await status.fault()) !== 'PostgreSQL is read-only.');
    await turn('off');
    await insert(transactions, 'writable again');
    expect(await status.fault()).not.toBe('PostgreSQL is read-only.');
    await status.onApplicationShutdown();
  });
});

describe('when the host of a service vanishes', () => {
  it('the server notices within seconds, and lets go of the locks that the service held', async () => {
    const dataSource = await bank();
    const names = ['tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count', 'tcp_user_timeout'];
    const settings = await dataSource.query<{ name: string; setting: string }[]>(
      'SELECT name, setting FROM pg_settings WHERE name = ANY ($1) ORDER BY name',
      [names],
    );
    expect(Object.fromEntries(settings.map(({ name, setting }) => [name, setting]))).toEqual({
      tcp_keepalives_idle: '10',
      tcp_keepalives_interval: '5',
      tcp_keepalives_count: '3',
      tcp_user_timeout: '20000',
    });
  });
});
