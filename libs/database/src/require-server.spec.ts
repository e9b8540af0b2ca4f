import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { bankOptions } from './account-fixture.js';
import { connectDataSource, openDataSource, requireDatabase } from './open-data-source.js';
import { openPooler, type Pooler } from './pooler-fixture.js';

let database: TestDatabase;
/** Without parameters. */
let plainUrl: string;
let pooler: Pooler | undefined;
const open: DataSource[] = [];

beforeEach(async () => {
  database = await createDatabase();
  plainUrl = database.url.replace(/\?.*/, '');
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((dataSource) => dataSource.destroy()));
  await pooler?.close();
  pooler = undefined;
  await database.drop();
});

async function start(url: string): Promise<DataSource> {
  const dataSource = await openDataSource(bankOptions(url));
  open.push(dataSource);
  return dataSource;
}

function withParameter(name: string, value: string): string {
  const url = new URL(plainUrl);
  url.searchParams.set(name, value);
  return url.href;
}

/** Schemas and tables that were created. */
async function created(): Promise<string[]> {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace WHERE nspname = 'bank'
     UNION ALL SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`,
  );
  await client.end();
  return rows.map(({ name }) => name);
}

describe('the options of a URL', () => {
  it.each([
    ['-c work_mem=8MB', '8MB'],
    ['-c work_mem=8MB -c search_path=elsewhere', '8MB'],
    ['', '4MB'],
  ])('hold beside those of the service, whose own win: %j', async (given, memory) => {
    const bank = await start(withParameter('options', given));
    const [row] = await bank.query<object[]>(
      `SELECT to_regclass('account')::oid = to_regclass('bank.account')::oid AS finds_tables,
         current_setting('search_path') AS path, current_setting('work_mem') AS memory,
         current_setting('statement_timeout') AS statement`,
    );
    expect(row).toEqual({ finds_tables: true, path: 'bank,public', memory, statement: '2800ms' });
  });

  it('leave the other parameters of the URL as they are', async () => {
    const url = new URL(withParameter('options', '-c work_mem=8MB'));
    url.searchParams.set('statement_timeout', '1234');
    const bank = await start(url.href);
    expect(await bank.query(`SELECT current_setting('statement_timeout') AS statement`)).toEqual([
      { statement: '1234ms' },
    ]);
  });
});

describe('a pooler that drops start-up parameters', () => {
  const path =
    /^PostgreSQL at 127\.0\.0\.1:\d+\/\w+ did not receive the start-up parameters of the connection: search_path is "\$user", public, not bank,public\. A pooler such as PgBouncer drops them: set DATABASE_URL to the address of PostgreSQL itself\.$/;

  it.each([
    [['options', 'statement_timeout'], path],
    [['options'], path],
    [['statement_timeout'], /: statement_timeout is 0 ms, not 2800 ms\. A pooler such as PgBouncer drops them/],
  ])('is refused before anything is created, and the refusal says why: %j', async (ignored, refusal) => {
    const { url } = (pooler = await openPooler(plainUrl, ignored));
    const starts = [
      () => start(url),
      () => connectDataSource(bankOptions(url)),
      () => requireDatabase({ url }, ['bank'], () => undefined),
    ];
    for (const startIt of starts) await expect(startIt()).rejects.toThrow(refusal);
    expect(await created()).toEqual([]);
  });

  it('is refused where it drops the statement_timeout of the URL', async () => {
    pooler = await openPooler(withParameter('statement_timeout', '1234'), ['statement_timeout']);
    await expect(start(pooler.url)).rejects.toThrow(': statement_timeout is 0 ms, not 1234 ms.');
  });

  it('is no other than PostgreSQL where it drops none that counts', async () => {
    pooler = await openPooler(plainUrl, ['application_name']);
    expect(await (await start(pooler.url)).query('SELECT * FROM account')).toEqual([]);
  });
});
