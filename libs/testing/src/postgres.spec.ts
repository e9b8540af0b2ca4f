import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createDatabase, createDatabaseFrom, startPostgres, type TestPostgres } from './postgres.js';
import { timeoutFactor } from './timeout-factor.js';

async function ask(url: string, sql: string, patienceMs = 20_000 * timeoutFactor): Promise<unknown[]> {
  const client = new pg.Client({
    connectionString: url,
    query_timeout: patienceMs,
    connectionTimeoutMillis: patienceMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<object>(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('createDatabase', () => {
  it('gives each caller an empty database of its own', async () => {
    const [first, second] = await Promise.all([createDatabase(), createDatabase()]);
    await ask(first.url, 'CREATE TABLE mine (id int)');
    expect(await ask(second.url, `SELECT to_regclass('mine') AS found`)).toEqual([{ found: null }]);
    await Promise.all([first.drop(), second.drop()]);
  });

  it('drops a database that is still in use', async () => {
    const { url, drop } = await createDatabase();
    const client = new pg.Client(url);
    client.on('error', () => undefined);
    await client.connect();
    await drop();
    await expect(ask(url, 'SELECT 1')).rejects.toThrow(/does not exist/);
  });
});

describe('createDatabaseFrom', () => {
  it('copies what is made once, however many ask at the same time, and each copy is its own', async () => {
    let timesMade = 0;
    const template = {
      name: 'fruit',
      make: async (url: string) => {
        timesMade += 1;
        await ask(url, 'CREATE TABLE fruit AS SELECT 1 AS id');
      },
    };
    const databases = await Promise.all(Array.from({ length: 4 }, () => createDatabaseFrom(template)));
    await ask(databases[0]!.url, 'DELETE FROM fruit');
    expect(await Promise.all(databases.map(({ url }) => ask(url, 'SELECT id FROM fruit')))).toEqual([
      [],
      [{ id: 1 }],
      [{ id: 1 }],
      [{ id: 1 }],
    ]);
    // A server that outlives the run keeps no template.
    expect(timesMade).toBe(process.env.ATOLL_TEST_DATABASE_URL ? 4 : 1);
    await Promise.all(databases.map(({ drop }) => drop()));
  });

  it('keeps nothing of a template that could not be made', async () => {
    const template = { name: 'vegetables', make: () => Promise.reject(new Error('It rains.')) };
    await expect(createDatabaseFrom(template)).rejects.toThrow('It rains.');
    await (await createDatabaseFrom({ ...template, make: () => Promise.resolve() })).drop();
  });
});

describe('startPostgres', () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  it('freezes and thaws', async () => {
    server.pause();
    await expect(ask(server.url, 'SELECT 1', 300)).rejects.toThrow(/timeout/i);
    server.resume();
    expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('is gone when killed, and comes back with its data at the same address', async () => {
    await ask(server.url, 'CREATE TABLE kept AS SELECT 7 AS number');
    await server.kill();
    await expect(ask(server.url, 'SELECT 1')).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
    await server.restart();
    expect(await ask(server.url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
  });
});
