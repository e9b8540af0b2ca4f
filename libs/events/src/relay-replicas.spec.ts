import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { EventEmitter } from 'node:events';
import { newId, Transactions } from '@atoll/database';
import { startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import type { QueryRunner } from 'typeorm';
import { Outbox } from './outbox.js';
import { eventually } from './world/eventually-fixture.js';
import { orderPlaced, shopDatabase } from './world/shop-fixture.js';
import { overJetStream } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;
let listener: QueryRunner;
let notifyingSessions: number[];
let notifiedAtMs: number;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(overJetStream, { database: database.url, broker: nats.url });
  listener = world.observer.database.createQueryRunner();
  const client = (await listener.connect()) as EventEmitter<{ notification: [{ processId: number }] }>;
  client.on('notification', ({ processId }) => {
    notifyingSessions.push(processId);
    notifiedAtMs = performance.now();
  });
  await listener.query('LISTEN "outbox.orders"');
});
beforeEach(async () => {
  notifyingSessions = [];
  await world.start();
  // Until one of them relays, all processes notify: so none of them commits the event by which it is seen to relay.
  await listener.query('INSERT INTO orders.outbox (id, event_name, payload) VALUES ($1, $2, $3)', [
    newId(),
    orderPlaced.name,
    { number: 1_000 },
  ]);
  await listener.query('NOTIFY "outbox.orders"');
  await eventually(async () => expect(await world.noted('letters')).toHaveLength(1));
  notifyingSessions = [];
});
afterEach(() => world.reset());
afterAll(async () => {
  await listener.release();
  await world.close();
  await nats.stop();
  await database.drop();
});

/** Adds an event in the given replica and returns the session that committed it. */
async function place(number: number, replica: number): Promise<number> {
  const app = world.app('orders', replica);
  return app.get(Transactions).run(async (manager) => {
    await app.get(Outbox).add(manager, orderPlaced, { number });
    const [session] = await manager.query<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');
    return session!.pid;
  });
}

describe('the relay', () => {
  it('is notified of the commits of other replicas, by a session that commits nothing else', async () => {
    await world.startReplica('orders');
    const writers = new Set<number>();
    for (let number = 0; number < 24; number += 2) {
      const committed = await Promise.all([place(number, 0), place(number + 1, 1)]);
      for (const session of committed) writers.add(session);
      // Without the notification each would wait for the fallback poll, for 5 s.
      await eventually(async () => expect(await world.noted('letters')).toHaveLength(number + 3));
    }
    expect(notifyingSessions.length).toBeGreaterThan(0);
    expect(new Set(notifyingSessions).size).toBe(1);
    expect(notifyingSessions.filter((session) => writers.has(session))).toEqual([]);
  });

  it(
    'needs no notification of the commits of its own process',
    async () => {
      for (let number = 0; number < 12; number += 1) {
        await world.orders.place([number]);
        await eventually(async () => expect(await world.noted('letters')).toHaveLength(number + 2));
      }
      expect(notifyingSessions).toEqual([]);
    },
    // Its looks are 5 s apart.
    30_000 * timeoutFactor,
  );

  it('gets one notification for all commits of another replica within 20 ms', async () => {
    await world.startReplica('orders');
    const commits = 120;
    const began = performance.now();
    const writer = async (first: number) => {
      for (let number = first; number < commits; number += 8) await place(number, number % 2);
    };
    await Promise.all(Array.from({ length: 8 }, (_, first) => writer(first)));
    await eventually(async () => expect(await world.noted('letters')).toHaveLength(1 + commits));
    expect(notifyingSessions.length).toBeGreaterThan(0);
    expect(notifyingSessions.length).toBeLessThanOrEqual(1 + (notifiedAtMs - began) / 20);
  });
});
