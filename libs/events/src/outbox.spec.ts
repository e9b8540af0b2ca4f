import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { InvalidPayload } from './event-payload.js';
import { Events } from './events.js';
import { Inbox } from './inbox.js';
import { Outbox } from './outbox.js';
import { eventually } from './world/eventually-fixture.js';
import { orderPlaced, specRecovery, shopDatabase } from './world/shop-fixture.js';
import { inProcess } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

const dayMs = 24 * 3_600_000;

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(inProcess, { database: database.url, broker: nats.url });
});
beforeEach(async () => {
  world.recovery = specRecovery;
  await world.start();
});
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
  const age = (days: number, where: string) =>
    world.observer.database.query(`UPDATE mail.inbox SET received_at = now() - interval '${days} days' WHERE ${where}`);
  const consumers = async () =>
    (
      await world.observer.database.query<{ consumer: string }[]>('SELECT DISTINCT consumer FROM mail.inbox ORDER BY 1')
    ).map((row) => row.consumer);

  it('forgets after 7 days what lies before a position up to which it has everything, and keeps the rest', async () => {
    await world.orders.place([1, 2]);
    await world.settled();
    await eventually(async () => {
      const progress = await world.observer.database.query<object[]>(
        'SELECT FROM mail.event_progress WHERE position = 2',
      );
      expect(progress).toHaveLength(2);
    });
    await age(8, `consumer = 'letters'`);
    expect(await world.app('mail').get(Inbox).prune()).toBe(2);
    expect(await consumers()).toEqual(['statistics']);
    // Its looks for what is missing would take the position on again.
    await world.app('mail').get(Events).beforeApplicationShutdown();
    await world.observer.database.query('UPDATE mail.event_progress SET position = 1');
    await age(8, 'true');
    expect(await world.app('mail').get(Inbox).prune()).toBe(1);
  });

  it('forgets after 30 days what has no position', async () => {
    await world.orders.place([1]);
    await world.settled();
    await world.observer.database.query('UPDATE mail.inbox SET position = NULL, publisher = NULL');
    await age(29, `consumer = 'letters'`);
    await age(31, `consumer = 'statistics'`);
    expect(await world.app('mail').get(Inbox).prune()).toBe(1);
    expect(await consumers()).toEqual(['letters']);
  });

  it('forgets all at once that is old enough, however much that is', async () => {
    const rows = 10_001;
    await world.observer.database.query(
      `INSERT INTO mail.inbox (consumer, event_id, received_at) SELECT 'letters', gen_random_uuid(), now() - interval '31 days' FROM generate_series(1, $1::int)`,
      [rows],
    );
    expect(await world.app('mail').get(Inbox).prune()).toBe(rows);
  });

  it('knows a copy again of what it has forgotten', async () => {
    await world.orders.place([1]);
    await world.settled();
    const [event] = world.published;
    if (!event) throw new Error('Nothing was published.');
    await eventually(async () => {
      expect(
        await world.observer.database.query<object[]>('SELECT FROM mail.event_progress WHERE position = 1'),
      ).toHaveLength(2);
    });
    await age(8, 'true');
    expect(await world.app('mail').get(Inbox).prune()).toBe(2);
    await world.deliverAgain({ ...event, occurredAt: new Date(Date.now() - 9 * dayMs).toISOString() });
    await world.orders.place([2]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 2]);

    // By the clock of the database: that of the process is four days late.
    const run = jest.fn(() => Promise.resolve());
    const forgotten = { ...event, occurredAt: new Date(Date.now() - 9 * dayMs).toISOString() };
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 4 * dayMs);
    const outcomes = [1, 2].map((attempt) =>
      world.app('mail').get(Inbox).take('letters', { type: orderPlaced, run }, forgotten, attempt),
    );
    expect(await Promise.all(outcomes).finally(() => clock.mockRestore())).toEqual(['done', 'done']);
    expect(run).not.toHaveBeenCalled();
  });
});
