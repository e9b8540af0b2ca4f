import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { Events } from './events.js';
import { eventually } from './world/eventually-fixture.js';
import { specRecovery, shopDatabase } from './world/shop-fixture.js';
import { overJetStream } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(overJetStream, { database: database.url, broker: nats.url });
});
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

const query = (sql: string, values?: unknown[]) => world.observer.database.query<object[]>(sql, values);
const published = () => eventually(async () => expect(await world.waiting()).toEqual([]));
const progressWhere = (condition: string) =>
  eventually(async () =>
    expect(
      await query(`SELECT FROM mail.event_progress WHERE event_name = 'orders.placed' AND ${condition}`),
    ).toHaveLength(2),
  );

it('a consumer that was away for longer than its publisher keeps events takes what the broker still holds, once', async () => {
  expectErrors(/letters: orders\.placed after position 1, up to 4, are lost/, /statistics: .* are lost/);
  world.recovery = specRecovery;
  await world.start();
  await eventually(() => expect(world.app('mail').get(Events).status()).toEqual({ ready: true }));
  await world.orders.place([1]);
  await progressWhere('position = 1');
  await world.stop('mail');
  const placed = `INSERT INTO orders.outbox (id, event_name, payload, occurred_at) VALUES ($1, 'orders.placed', $2, now() - interval '8 days')`;
  for (const number of [2, 3, 4]) await query(placed, [newId(), { number }]);
  await query('NOTIFY "outbox.orders"');
  await published();
  // As when the partitions of those days are gone.
  await query('DELETE FROM orders.outbox_published');
  world.beforeTake = () => progressWhere('lost = 1');
  await world.start();
  await eventually(async () => expect((await world.noted('letters')).length).toBe(4));
  for (const event of world.published) await world.deliverAgain(event);
  await world.settled();
  for (const consumer of ['letters', 'statistics']) expect(await world.noted(consumer)).toEqual([1, 2, 3, 4]);
});
