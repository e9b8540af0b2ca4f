import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { NatsLink, Signer } from '@atoll/rpc';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { jetstream, type StreamInfo } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { CourierAway, type DomainEvent } from './courier.js';
import { sealEvent } from './event-seal.js';
import { Events } from './events.js';
import { JetStreamCourier } from './jetstream-courier.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { openTcpProxy } from './world/tcp-proxy-fixture.js';
import {
  ackWaitMs,
  duplicateWindowMs,
  managerOf,
  overJetStream,
  overJetStreamWith,
  secret,
  stream,
} from './world/topology-fixture.js';
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

async function streamInfo(): Promise<StreamInfo> {
  return (await managerOf(world.observer.nats)).streams.info(stream);
}

async function ready(): Promise<void> {
  for (const service of ['orders', 'mail'] as const) {
    await eventually(() => expect(world.app(service).get(Events).status()).toEqual({ ready: true }));
  }
}

describe('the JetStream courier', () => {
  it('delivers what was published while a service was down', async () => {
    await world.start();
    await ready();
    await world.stop('mail');
    await world.orders.place([1, 2]);
    await eventually(async () => expect(await world.waiting()).toEqual([]));
    await world.start();
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 2]);
    expect(await world.noted('statistics')).toEqual([1, 2]);
  });

  it('lets an event have its effect once when the relay was away longer than the duplicate window', async () => {
    await world.start();
    await world.crashDuring('afterPublish', [1]);
    // Published after the event, and forgotten by the stream: so is the event.
    const probe = () => jetstream(world.observer.nats).publish('events.probe', '', { msgID: 'probe' });
    await probe();
    await eventually(async () => expect((await probe()).duplicate).toBe(false));
    await world.restartDead();
    await world.settled();
    const manager = await managerOf(world.observer.nats);
    const { state } = await manager.streams.info(stream, { subjects_filter: 'events.orders.placed' });
    expect(state.subjects).toEqual({ 'events.orders.placed': 2 });
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('publishes an event once within the duplicate window', async () => {
    await world.start();
    // Longer than any machine takes for this.
    await world.restartWith(overJetStreamWith({ duplicateWindowMs: 120_000 }));
    await world.crashDuring('afterPublish', [1]);
    const { state } = await streamInfo();
    expect(state.messages).toBe(1);
    await jetstream(world.observer.nats).publish('events.orders.placed', '', {
      msgID: (await world.waiting())[0]?.id ?? '',
    });
    expect((await streamInfo()).state.messages).toBe(1);
    await world.restartWith(overJetStream);
  });

  it('goes on when the broker was killed and came back', async () => {
    await world.start();
    await ready();
    await world.orders.place([1]);
    await nats.kill();
    await eventually(() =>
      expect(world.app('orders').get(Events).status()).toEqual({
        ready: false,
        reason: 'JetStream is not set up for events',
      }),
    );
    await world.orders.place([2, 3]);
    expect(await world.waiting()).not.toHaveLength(0);
    await nats.restart();
    await world.orders.place([4]);
    await world.settled();
    expect((await world.noted('letters')).sort()).toEqual([1, 2, 3, 4]);
  });

  it('goes on when the connection to the broker broke', async () => {
    await world.start();
    await world.orders.place([1]);
    world.cut('broker');
    await world.orders.place([2, 3]);
    await eventually(() => expect(world.app('mail').get(Events).status().ready).toBe(false));
    world.mend('broker');
    await world.settled();
    expect((await world.noted('letters')).sort()).toEqual([1, 2, 3]);
  });

  it('starts while the broker is away', async () => {
    await nats.kill();
    await world.start();
    await world.orders.place([1]);
    await nats.restart();
    await world.settled();
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
  });

  it('makes a stream and consumers again that were lost', async () => {
    await world.start();
    await ready();
    const manager = await managerOf(world.observer.nats);
    await manager.streams.delete(stream);
    await world.orders.place([1]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
    await manager.consumers.delete(stream, 'mail_letters');
    await world.orders.place([2]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1, 2]));
  });

  it('makes a stream again that was lost where nobody of the service listens, and is away until then', async () => {
    const link = NatsLink.open({ servers: nats.url });
    // Nothing but the event that it cannot publish tells it.
    const never = 3_600_000;
    const courier = new JetStreamCourier({ link, secret, stream, checkEveryMs: never });
    const joined = courier.join('hall', [], () => undefined);
    await eventually(() => expect(joined.status()).toEqual({ ready: true }));
    const greeted = {
      name: 'hall.greeted',
      payload: {},
      occurredAt: new Date().toISOString(),
      position: 1,
      previous: 0,
    };
    expect(await joined.publish({ ...greeted, id: newId() }, 1)).toBe('done');
    await (await managerOf(world.observer.nats)).streams.delete(stream);
    await expect(joined.publish({ ...greeted, id: newId() }, 1)).rejects.toThrow(CourierAway);
    await eventually(async () => expect(await joined.publish({ ...greeted, id: newId() }, 1)).toBe('done'));
    await joined.close();
    await link.close();
  });

  it('is not ready any more once it is closed, also where it was being set up', async () => {
    await nats.kill();
    const link = NatsLink.open({ servers: nats.url });
    const courier = new JetStreamCourier({ link, secret, stream });
    let isReady = false;
    const joined = courier.join('hall', [], () => (isReady = true));
    await joined.close();
    await link.close();
    await nats.restart();
    expect([isReady, joined.status()]).toEqual([false, expect.objectContaining({ ready: false })]);
  });

  it('gives back at once what the broker had sent as it stopped, for other replicas to take', async () => {
    const proxy = await openTcpProxy(nats.url);
    const links = [proxy.url, nats.url].map((servers) => NatsLink.open({ servers }));
    const taken: unknown[] = [];
    // Longer than the spec lasts: what is not given back is lost to it.
    const [stopping, other] = links.map((link, replica) => {
      const consumer = {
        name: 'guests',
        eventNames: ['hall.greeted'],
        take: ({ id }: DomainEvent) => Promise.resolve(taken.push([replica, id])).then(() => 'done' as const),
      };
      return () =>
        new JetStreamCourier({ link, secret, stream, ackWaitMs: 3_600_000 }).join('hall', [consumer], () => undefined);
    });
    const first = stopping!();
    await eventually(() => expect(first.status()).toEqual({ ready: true }));
    const manager = await managerOf(world.observer.nats);
    const guests = () => manager.consumers.info(stream, 'hall_guests');
    let sent = '';
    // Again where the first one no longer asks for events, or has this one already.
    await eventually(async () => {
      proxy.thaw();
      expect(await guests()).toMatchObject({ num_waiting: 1, num_ack_pending: 0 });
      proxy.freeze();
      sent = newId();
      const occurredAt = new Date().toISOString();
      const greeted = { id: sent, name: 'hall.greeted', payload: {}, occurredAt, position: 1, previous: 0 };
      const { subject, text, headers } = sealEvent(new Signer(secret), 'hall', greeted);
      await jetstream(world.observer.nats).publish(subject, text, { headers });
      expect((await guests()).num_ack_pending).toBe(1);
    });
    const stopped = first.stopDelivering();
    proxy.thaw();
    await stopped;
    const second = other!();
    await eventually(() => expect(taken).toContainEqual([1, sent]));
    await Promise.all([first.close(), second.close()]);
    await Promise.all(links.map((link) => link.close()));
    await proxy.close();
  });

  it('leaves aside what is no event', async () => {
    expectErrors(/is ignored: it is not an event/);
    await world.start();
    await ready();
    const { nats: connection } = world.observer;
    for (const junk of [
      '',
      '{',
      'null',
      '{"id":"1"}',
      JSON.stringify({ id: 'x', name: 'orders.placed', payload: {}, occurredAt: 'now' }),
    ]) {
      await jetstream(connection).publish('events.orders.placed', junk);
    }
    await world.orders.place([1]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('keeps the stream on disk up to a limit in bytes, and brings it up to date without touching what an operator set', async () => {
    await world.start();
    await ready();
    const { config } = await streamInfo();
    expect(config).toMatchObject({
      storage: 'file',
      subjects: ['events.>'],
      discard: 'new',
      max_age: 0,
      max_bytes: 1024 ** 3,
      num_replicas: 1,
      duplicate_window: nanos(duplicateWindowMs),
    });
    await world.stop();
    const manager = await managerOf(world.observer.nats);
    await manager.streams.update(stream, { ...config, duplicate_window: nanos(1_000), max_bytes: 1_000_000 });
    await manager.consumers.update(stream, 'mail_letters', { ack_wait: nanos(1_000) });
    await world.start();
    await ready();
    expect((await streamInfo()).config).toMatchObject({
      duplicate_window: nanos(duplicateWindowMs),
      max_bytes: 1_000_000,
    });
    const { config: letters } = await manager.consumers.info(stream, 'mail_letters');
    expect(letters).toMatchObject({
      durable_name: 'mail_letters',
      ack_policy: 'explicit',
      ack_wait: nanos(ackWaitMs),
      filter_subject: 'events.orders.>',
      max_deliver: -1,
    });
    expect((await manager.consumers.info(stream, 'mail_statistics')).config.filter_subject).toBe(
      'events.orders.placed',
    );
  });

  it('shares the work among the replicas of a service, and each event has its effect once', async () => {
    await world.start();
    await world.startReplica('mail');
    await world.startReplica('orders');
    const numbers = Array.from({ length: 40 }, (_, index) => index);
    for (const number of numbers) await world.orders.place([number]);
    await world.settled();
    expect((await world.noted('letters')).sort((a, b) => a - b)).toEqual(numbers);
  });

  it('relays from another replica when the one that relayed cannot reach the broker', async () => {
    await world.start();
    await ready();
    await world.orders.place([1]);
    await world.settled();
    world.cut('broker');
    await world.startReplica('orders');
    await world.startReplica('mail');
    await world.orders.place([2]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1, 2]));
    expect(world.app('orders').get(Events).status().ready).toBe(false);
  });

  it('relays from another replica when the one that relayed dies', async () => {
    await world.start();
    await world.startReplica('orders');
    await world.crashDuring('beforePublish', [1]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
  });
});
