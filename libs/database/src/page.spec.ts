import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openBank, type Bank } from './account-fixture.js';
import { readPage } from './page.js';
import { Statements } from './statements.js';

let bank: Bank;
beforeAll(async () => {
  bank = await openBank();
  await bank.dataSource.query(`INSERT INTO account SELECT 'account ' || n, n FROM generate_series(1, 9) n`);
});
afterAll(() => bank.close());

const page = (limit: number | null, offset: number) =>
  readPage<{ name: string; opened: Date; cents: string }>(new Statements(bank.dataSource), {
    from: 'account WHERE balance_in_cents > 2',
    order: 'balance_in_cents DESC',
    window: 'LIMIT $1 OFFSET $2',
    columns: 'row.name, balance_in_cents::bigint AS cents, opened',
    joins: `JOIN (SELECT name, to_timestamp(balance_in_cents) AS opened FROM account) opening ON opening.name = row.name`,
    values: [limit, offset],
  });

it('a page has its rows in order, with their columns alone and their types, and the total of the listing', async () => {
  const { total, rows } = await page(3, 2);
  expect(total).toBe(7);
  expect(rows).toEqual(
    [7, 6, 5].map((cents) => ({ name: `account ${cents}`, cents: String(cents), opened: new Date(cents * 1000) })),
  );
});

it('without a limit it has all rows, and past the end none, with the total still', async () => {
  expect((await page(null, 0)).rows).toHaveLength(7);
  expect(await page(3, 7)).toEqual({ total: 7, rows: [] });
});
