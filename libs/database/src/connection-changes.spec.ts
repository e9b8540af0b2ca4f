import { endConnections } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openBank, type Bank } from './account-fixture.js';
import { ConnectionChanges } from './connection-changes.js';
import { inBackground } from './split-pool.js';

let bank: Bank;
beforeAll(async () => {
  bank = await openBank({ backgroundPoolSize: 1 });
});
afterAll(() => bank.close());

it('a cache is cleared when connections are lost, and before the next one is used, also those of background work', async () => {
  const changes = new ConnectionChanges(bank.dataSource);
  const usual = (sql: string) => bank.dataSource.query<unknown>(sql);
  const background = (sql: string) => inBackground(() => usual(sql));
  for (const query of [usual, background]) {
    await query('SELECT 1');
    const lost = new Promise<void>((resolve) => changes.clear({ clear: resolve }));
    await endConnections(query);
    await lost;
    const cache = new Set(['read']);
    changes.clear(cache);
    await query('SELECT 1');
    expect(cache.size).toBe(0);
  }
});
