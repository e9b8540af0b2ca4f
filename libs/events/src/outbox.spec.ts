import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { createDatabase, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { InvalidPayload } from './event-payload.js';
import { Inbox } from './inbox.js';
import { Outbox } from './outbox.js';
import { orderPlaced } from './world/shop-fixture.js';
import { inProcess } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([createDatabase(), startNats()]);
  world = await World.open(inProcess, { database: database.url, broker: nats.url });
});
beforeEach(() => world.start());
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

describe('the outbox', () => {
  it('takes nothing outside of a transaction', async () => {
    const app = world.app('orders');
    const added = app.get(Outbox).add(app.get(DataSource).manager, orderPlaced, { number: 1 });
    await expect(added).rejects.toThrow('Outbox.add must run inside a transaction.');
  });

  it('takes no payload that its class would refuse, and the cause is rolled back', async () => {
    const app = world.app('orders');
    const placed = app.get(Transactions).run(async (manager) => {
      await manager.query('INSERT INTO placed VALUES (1)');
      await app.get(Outbox).add(manager, orderPlaced, { number: 1, password: 'secret' } as { number: number });
    });
    await expect(placed).rejects.toThrow(InvalidPayload);
    expect(await world.placed()).toEqual([]);
    expect(await world.waiting()).toEqual([]);
  });
});

describe('the inbox', () => {
  it('forgets what was received before a given time, and keeps the rest', async () => {
    await world.orders.place([1, 2]);
    await world.settled();
    await world.observer.database.query(`UPDATE mail.inbox SET received_at = now() - interval '31 days' WHERE consumer = 'letters'`);
    const pruned = await world
      .app('mail')
      .get(Inbox)
      .prune(new Date(Date.now() - 30 * 24 * 3_600_000));
    expect(pruned).toBe(2);
    const left = await world.observer.database.query<object[]>('SELECT consumer FROM mail.inbox');
    expect(left).toEqual([{ consumer: 'statistics' }, { consumer: 'statistics' }]);
  });
});
