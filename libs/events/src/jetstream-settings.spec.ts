import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import { NatsLink } from '@atoll/rpc';
import { nanos } from '@nats-io/transport-node';
import { DeadLetters } from './dead-letters.js';
import { Events } from './events.js';
import { JetStreamCourier } from './jetstream-courier.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { managerOf, overJetStream, overJetStreamWith, secret, stream } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(overJetStream, { database: database.url, broker: nats.url });
});
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

/** With what no busy machine outwaits, where a repeated delivery would be one too many. */
const patient = overJetStreamWith({ ackWaitMs: 600_000 });

async function ready(): Promise<void> {
  for (const service of ['orders', 'mail'] as const) {
    await eventually(() => expect(world.app(service).get(Events).status()).toEqual({ ready: true }));
  }
}

/** How often an event was delivered to the consumer `letters`, and the delivery finished. */
function deliveries(number: number): number {
  const event = world.published.find(({ payload }) => (payload as { number: number }).number === number);
  return (world.delivered.get(event?.id ?? '') ?? []).filter((consumer) => consumer === 'letters').length;
}

describe('the settings of the JetStream courier', () => {
  it('are, unless given: silence of 30 s until a delivery is repeated, and ids recognised for 2 minutes', async () => {
    const link = NatsLink.open({ servers: nats.url });
    const noted = { name: 'notes', eventNames: ['hall.greeted'], take: () => Promise.resolve('done' as const) };
    const joined = new JetStreamCourier({ link, secret }).join('hall', [noted], () => undefined);
    await eventually(() => expect(joined.status()).toEqual({ ready: true }));
    const manager = await managerOf(world.observer.nats);
    expect((await manager.streams.info(stream)).config.duplicate_window).toBe(nanos(120_000));
    expect((await manager.consumers.info(stream, 'hall_notes')).config).toMatchObject({
      ack_wait: nanos(30_000),
      max_ack_pending: 256,
      max_deliver: -1,
    });
    await joined.close();
    await link.close();
  });

  it('repeat the delivery of a process that shows no sign of life, in another process', async () => {
    await world.restartWith(overJetStream);
    await ready();
    await world.startReplica('mail');
    let entered = 0;
    // Frozen before it holds any row, so that nothing but `ack_wait` decides.
    world.beforeTake = async (_event, consumer, freeze) => {
      if (consumer !== 'letters') return;
      entered += 1;
      if (entered === 1) await freeze();
    };
    await world.orders.place([1]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
    expect(entered).toBeGreaterThanOrEqual(2);
  });

  it('do not repeat the delivery of a process that is still at it, however long that takes', async () => {
    // Longer than a busy machine keeps a process from showing a sign of life.
    const ackWaitMs = 1_500 * timeoutFactor;
    await world.restartWith(overJetStreamWith({ ackWaitMs }));
    await ready();
    await world.startReplica('mail');
    world.script = async (_payload, consumer) => {
      if (consumer === 'letters') await new Promise((resolve) => setTimeout(resolve, 2 * ackWaitMs));
    };
    await world.orders.place([1]);
    await world.settled();
    expect(deliveries(1)).toBe(1);
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('let a failed event wait for its back-off, while others are delivered', async () => {
    world.retries = { firstMs: 600_000, maxMs: 600_000 };
    await world.restartWith(patient);
    await ready();
    world.script = (payload, consumer) => {
      if (consumer === 'letters' && payload.number === 1) throw new Error('not yet');
    };
    await world.orders.place([1]);
    await eventually(() => expect(deliveries(1)).toBe(1));
    const others = Array.from({ length: 50 }, (_, index) => index + 2);
    for (const number of others) await world.orders.place([number]);
    await eventually(async () => expect(await world.noted('letters')).toEqual(others));
    expect(deliveries(1)).toBe(1);
    expect(await world.app('mail').get(DeadLetters).count()).toBe(0);
  });

  it('deliver a failed event again when its back-off is over', async () => {
    world.retries = { firstMs: 400, maxMs: 400 };
    await world.restartWith(patient);
    await ready();
    let failures = 0;
    world.script = (_payload, consumer) => {
      if (consumer === 'letters' && failures++ === 0) throw new Error('not yet');
    };
    await world.orders.place([1]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
    expect(deliveries(1)).toBe(2);
  });
});
