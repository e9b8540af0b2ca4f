import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { prices } from '@atoll/contracts/billing';
import { Transactions } from '@atoll/database';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { BillingFixture, errorOf } from '../billing-fixture.js';
import { BillingSettings } from '../billing-settings.js';
import { PlatformCurrency } from './platform-currency.js';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await BillingFixture.start({ currency: 'USD' });
});
afterAll(() => fixture.stop());
beforeEach(() => fixture.query('TRUNCATE price, price_audit, currency'));

const create = (sku: string) =>
  fixture.call(prices.create, { sku, unit: 'vm', unit_price: '2.5', valid_from: '2040-01-01T00:00:00.000Z' });
/** As a replica starts with this currency. */
const start = (currency: string) =>
  new PlatformCurrency(fixture.get(Transactions), Object.assign(new BillingSettings(), { currency })).onModuleInit();
const refusal =
  'ATOLL_CURRENCY is EUR, but the prices of this platform are in USD. Set ATOLL_CURRENCY=USD: the currency of a platform can be changed only before its first price.';
const stored = () => fixture.query('SELECT code FROM currency');

describe('the currency of a platform', () => {
  it('may change until the first price, which stores it; then a start with another one is refused', async () => {
    for (const currency of ['EUR', 'USD']) await start(currency);
    expect(await stored()).toEqual([]);
    await create('first');
    await start('USD');
    await expect(start('EUR')).rejects.toThrow(refusal);
    expect(await stored()).toEqual([{ code: 'USD' }]);
  });

  it('is not stored by a price that was refused', async () => {
    const past = { sku: 'past', unit: 'vm', unit_price: '2.5', valid_from: '2020-01-01T00:00:00.000Z' };
    expect((await errorOf(fixture.call(prices.create, past))).code).toBe('invalid_input');
    await start('EUR');
    expect(await stored()).toEqual([]);
  });

  it('is that of the first start which finds prices of a release that did not store it; a later one with another is refused', async () => {
    await create('old');
    await fixture.query('TRUNCATE currency');
    await start('USD');
    await expect(start('EUR')).rejects.toThrow(refusal);
  });

  it('is one, whichever replicas start at once where there are prices', async () => {
    await create('old');
    await fixture.query('TRUNCATE currency');
    const started = await Promise.allSettled(['USD', 'EUR', 'USD', 'EUR'].map(start));
    const [kept] = (await stored()) as { code: string }[];
    expect(started.map(({ status }) => status === 'fulfilled')).toEqual(
      ['USD', 'EUR', 'USD', 'EUR'].map((currency) => currency === kept?.code),
    );
  });

  it('is one, whichever replicas set the first price at once: one that started before with another sets none', async () => {
    await start('EUR');
    const refused = await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query(`INSERT INTO currency (code) VALUES ('EUR')`);
      const creating = errorOf(create('first'));
      await untilLockWaits(fixture.get(DataSource), { text: 'INSERT INTO currency', unless: creating });
      await other.commitTransaction();
      return creating;
    });
    expect([refused.code, refused.message]).toEqual([
      'conflict',
      expect.stringMatching(/^ATOLL_CURRENCY is USD, but the prices of this platform are in EUR\./),
    ]);
    expect(await fixture.query('SELECT FROM price')).toEqual([]);
  });
});
