import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { EntityManager } from 'typeorm';
import { openBank, type Bank } from './account-fixture.js';
import { Transactions } from './transactions.js';

let bank: Bank;
let transactions: Transactions;

beforeAll(async () => {
  bank = await openBank();
  transactions = new Transactions(bank.dataSource);
});
afterAll(() => bank.close());

/** What PostgreSQL keeps prepared on the connection of a transaction, of statements that begin so. */
async function preparedLike(manager: EntityManager, start: string): Promise<string[]> {
  const rows = await manager.query<{ statement: string }[]>(
    `SELECT statement FROM pg_prepared_statements WHERE starts_with(statement, '${start}') ORDER BY 1`,
  );
  return rows.map(({ statement }) => statement);
}

it('a statement of transactions that is sent again is parsed and planned once', async () => {
  const ask = () => transactions.run((manager) => manager.query<{ sum: number }[]>('SELECT 1 + $1::int AS sum', [2]));
  for (let times = 0; times < 3; times += 1) expect(await ask()).toEqual([{ sum: 3 }]);
  const kept = await transactions.run((manager) => preparedLike(manager, 'SELECT 1 + '));
  expect(kept).toEqual(['SELECT 1 + $1::int AS sum']);
});

it('one that is sent outside of transactions is planned for its values', async () => {
  for (let times = 0; times < 3; times += 1) await bank.dataSource.query('SELECT 2 + $1::int AS sum', [2]);
  expect(await transactions.run((manager) => preparedLike(manager, 'SELECT 2 + '))).toEqual([]);
});

it('texts without end do not fill the memory of the server', async () => {
  const kept = await transactions.run(async (manager) => {
    for (let text = 0; text < 300; text += 1)
      for (let times = 0; times < 2; times += 1) await manager.query(`SELECT $1::int AS number_${text}`, [text]);
    return preparedLike(manager, 'SELECT $1::int AS number_');
  });
  expect(kept.length).toBeGreaterThan(100);
  expect(kept.length).toBeLessThanOrEqual(200);
});

it('a transaction whose statement a migration has changed runs again, on every connection, and nobody notices', async () => {
  await bank.dataSource.query('CREATE TABLE changing AS SELECT 1 AS one');
  const ask = (meet: () => Promise<unknown> = () => Promise.resolve()) =>
    transactions.run(async (manager) => {
      await meet();
      return manager.query<object[]>('SELECT * FROM changing WHERE one = $1', [1]);
    });
  /** On so many connections at once. */
  const askAtOnce = (count: number) => {
    const all = Promise.withResolvers<void>();
    let arrived = 0;
    const meet = () => {
      arrived += 1;
      if (arrived >= count) all.resolve();
      return all.promise;
    };
    return Promise.all(Array.from({ length: count }, () => ask(meet)));
  };
  for (let times = 0; times < 3; times += 1) await askAtOnce(5);
  await bank.dataSource.query('ALTER TABLE changing ADD COLUMN two int DEFAULT 2');
  expect(await askAtOnce(5)).toEqual(Array.from({ length: 5 }, () => [{ one: 1, two: 2 }]));
  await bank.dataSource.query('ALTER TABLE changing DROP COLUMN two');
  expect(await ask()).toEqual([{ one: 1 }]);
});

it('a table that fills is no longer read from end to end five seconds later, though nobody has analysed it', async () => {
  await bank.dataSource.query('CREATE TABLE filling AS SELECT n FROM generate_series(1, 3) n');
  await bank.dataSource.query('CREATE INDEX ON filling (n)');
  await bank.dataSource.query('ANALYZE filling');
  const text = 'SELECT n FROM filling WHERE n = $1';
  const nowMs = performance.now();
  const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
  const runs = await transactions.run(async (manager) => {
    const plan = async () => {
      for (let times = 0; times < 8; times += 1) await manager.query(text, [2]);
      const [{ name = '' } = {}] = await manager.query<{ name: string }[]>(
        `SELECT name FROM pg_prepared_statements WHERE statement = '${text}' ORDER BY prepare_time DESC`,
      );
      const [first] = await manager.query<{ 'QUERY PLAN': string }[]>(`EXPLAIN EXECUTE "${name}" (2)`);
      return first?.['QUERY PLAN'].replace(/ (using|on) .*/, '');
    };
    const small = await plan();
    await manager.query('INSERT INTO filling SELECT n FROM generate_series(4, 50000) n');
    // Until then the server goes by the first plan, unless it happens to forget all plans, as where its databases
    // change much at once.
    clock.mockReturnValue(nowMs + 5_001);
    return [small, await plan()];
  });
  jest.restoreAllMocks();
  expect(runs).toEqual(['Seq Scan', expect.stringMatching(/^(Index Only|Index|Bitmap Heap) Scan/)]);
});
