import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { priceChanged, priceDirectory, type Price, type PricesAfter } from '@atoll/contracts/billing';
import { newId, Statements, Transactions } from '@atoll/database';
import type { Rpc } from '@atoll/rpc';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { setTimeout as delay } from 'node:timers/promises';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { KnownPrices } from './known-prices.js';
import { PriceSnapshot } from './price-snapshot.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

/** Billing, as far as it is known here: prices in force by id, in pages of two. */
class Owner {
  readonly inForce: Price[] = [];
  pages = 0;
  #clock = 0;

  constructor(private readonly afterPage: (page: number) => Promise<void>) {}

  add(sku: string, start: number, unit_price: string): Price {
    const valid_from = new Date(Date.UTC(2026, 0, 1 + start)).toISOString();
    const replaced = this.inForce.findIndex((price) => price.sku === sku && price.valid_from === valid_from);
    if (replaced >= 0) this.inForce.splice(replaced, 1);
    const created_at = new Date(Date.UTC(2026, 5, 1) + this.#clock++).toISOString();
    const price = {
      price_id: newId(),
      sku,
      unit: 'vgpu',
      unit_price,
      currency: 'USD',
      team_id: null,
      valid_from,
      created_at,
      replaced_at: null,
    };
    this.inForce.push(price);
    return price;
  }

  async call(operation: unknown, { price_id = '' }: PricesAfter): Promise<{ prices: Price[] }> {
    if (operation !== priceDirectory.page) throw new Error('Billing was asked something else.');
    const inOrder = this.inForce.toSorted((one, other) => one.price_id.localeCompare(other.price_id));
    const prices = inOrder.filter((price) => price.price_id > price_id).slice(0, 2);
    await this.afterPage((this.pages += 1));
    return { prices };
  }
}

/** Runs a snapshot from its beginning, as a first start does, until it is complete. */
async function fetchAll(owner: Owner): Promise<void> {
  const [known, statements, transactions] = [
    fixture.get(KnownPrices),
    fixture.get(Statements),
    fixture.get(Transactions),
  ];
  const snapshot = new PriceSnapshot(known, statements, transactions, owner as unknown as Rpc);
  snapshot.onApplicationBootstrap();
  while ((await fixture.query('SELECT FROM price_directory_snapshot')).length === 0) await delay(10);
  await snapshot.onModuleDestroy();
}

describe('prices that are older than the service', () => {
  it('law: are all known once they have been fetched, whatever was replaced meanwhile, and whatever was known before', async () => {
    const change = fc.record({
      start: fc.nat(6),
      page: fc.nat(4),
      isTold: fc.constantFrom('at once', 'afterwards', 'twice'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.nat(7),
        fc.array(change, { maxLength: 6 }),
        fc.nat(3),
        async (count, changes, knownBefore) => {
          await fixture.query('TRUNCATE price, price_directory_snapshot');
          const sku = `gpu.${newId()}`;
          const later: Price[] = [];
          const owner: Owner = new Owner(async (page) => {
            for (const { start, isTold } of changes.filter((one) => one.page === page - 1)) {
              const price = owner.add(sku, start, String(later.length + 100));
              if (isTold !== 'afterwards') await fixture.tell(priceChanged, price);
              if (isTold !== 'at once') later.push(price);
            }
          });
          for (let start = 0; start < count; start += 1) owner.add(sku, start, String(start));
          // As after a snapshot that lacked some.
          for (const price of owner.inForce.slice(0, knownBefore)) await fixture.tell(priceChanged, price);
          await fetchAll(owner);
          for (const price of later) await fixture.tell(priceChanged, price);
          const known = await fixture.query<{ price_id: string }>(
            'SELECT price_id FROM price WHERE sku = $1 ORDER BY valid_from',
            [sku],
          );
          const inForce = owner.inForce.toSorted((one, other) => one.valid_from.localeCompare(other.valid_from));
          expect(known.map(({ price_id }) => price_id)).toEqual(inForce.map(({ price_id }) => price_id));
        },
      ),
      runs(40),
    );
  });

  it('are fetched once more where they were fetched by the release before, which could lack some', async () => {
    await fixture.query('TRUNCATE price, price_directory_snapshot');
    await fixture.query('INSERT INTO price_snapshot (completed_at) VALUES (now()) ON CONFLICT DO NOTHING');
    const owner = new Owner(() => Promise.resolve());
    for (const start of [0, 1, 2]) owner.add('gpu.healed', start, '1');
    await fetchAll(owner);
    expect(await fixture.query('SELECT FROM price')).toHaveLength(3);
    const { pages } = owner;
    await fetchAll(owner);
    expect(owner.pages).toBe(pages);
  });

  it('get the currency that a release before did not store', async () => {
    await fixture.query('TRUNCATE price, price_directory_snapshot');
    const owner = new Owner(() => Promise.resolve());
    await fixture.tell(priceChanged, owner.add('gpu.before', 0, '1'));
    await fixture.query('UPDATE price SET currency = NULL');
    await fetchAll(owner);
    expect(await fixture.query('SELECT currency FROM price')).toEqual([{ currency: 'USD' }]);
  });
});
