import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { priceDirectory, prices, type Price } from '@atoll/contracts/billing';
import { systemContext } from '@atoll/rpc';
import { contextOf, operator, runs } from '@atoll/testing';
import { array, assert, asyncProperty, integer, nat, record } from 'fast-check';
import { BillingFixture, errorOf } from '../billing-fixture.js';

let billing: BillingFixture;
beforeAll(async () => {
  billing = await BillingFixture.start();
});
afterAll(() => billing.stop());

const start = (n: number) => new Date(Date.UTC(2030, 0, 1) + n * 60_000).toISOString();
let sequence = 0;

/** Puts so many prices of one SKU in the place of all others, the n-th from its own start on, with ids in any order. */
async function havePrices(count: number): Promise<string> {
  const sku = `sku-${(sequence += 1)}`;
  await billing.query('TRUNCATE price, price_audit');
  await billing.query(`INSERT INTO sku (sku, unit) VALUES ($1, 'unit')`, [sku]);
  await billing.query(
    `INSERT INTO price (id, sku, valid_from, unit_price, created_at)
     SELECT gen_random_uuid(), $1, $2::timestamptz + n * interval '1 minute', n, now() - interval '1 hour' FROM generate_series(0, $3 - 1) n`,
    [sku, start(0), count],
  );
  return sku;
}

async function inForce(): Promise<string[]> {
  const rows = await billing.query<{ id: string }>('SELECT id FROM price WHERE replaced_at IS NULL ORDER BY id');
  return rows.map(({ id }) => id);
}

/** All pages; `between` is done after each. */
async function walk(between: (page: number) => Promise<void> = () => Promise.resolve()): Promise<Price[]> {
  const all: Price[] = [];
  for (let page = 0; ; page += 1) {
    const after = all.at(-1)?.price_id;
    const { prices: next } = await billing.ask(
      priceDirectory.page,
      after === undefined ? {} : { price_id: after },
      systemContext('specs'),
    );
    if (next.length === 0) return all;
    all.push(...next);
    await between(page);
  }
}

describe('the pages of prices in force', () => {
  it('law: have each price that is in force all the time, once, whatever is replaced and added between them', async () => {
    const changes = array(record({ page: nat(3), at: integer({ min: 0, max: 1_500 }) }), { maxLength: 8 });
    await assert(
      asyncProperty(integer({ min: 0, max: 1_400 }), changes, async (count, drawn) => {
        const sku = await havePrices(count);
        const before = await inForce();
        const walked = await walk(async (page) => {
          // A start that has a price gets another one; others are new.
          for (const { at } of drawn.filter((change) => change.page === page)) {
            const price = { sku, unit: 'unit', unit_price: '7', valid_from: start(at), force: true };
            await billing.call(prices.create, price);
          }
        });
        const after = new Set(await inForce());
        const ids = walked.map(({ price_id }) => price_id);
        expect(new Set(ids).size).toBe(ids.length);
        expect(before.filter((id) => after.has(id) && !ids.includes(id))).toEqual([]);
      }),
      runs(15),
    );
  });

  it('have prices as they are listed', async () => {
    const sku = await havePrices(2);
    // What it takes the place of is in no page.
    await billing.call(prices.create, { sku, unit: 'unit', unit_price: '7', valid_from: start(0), force: true });
    const listed = await billing.call(prices.list, {});
    expect((await walk()).sort((a, b) => a.valid_from.localeCompare(b.valid_from))).toEqual(
      listed.data.sort((a, b) => a.valid_from.localeCompare(b.valid_from)),
    );
  });

  it('are for services alone', async () => {
    expect((await errorOf(billing.ask(priceDirectory.page, {}, contextOf(operator)))).code).toBe('forbidden');
  });
});
