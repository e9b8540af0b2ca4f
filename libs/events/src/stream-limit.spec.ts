import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { Logger } from '@nestjs/common';
import { Events } from './events.js';
import { StreamMonitor } from './stream-monitor.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { managerOf, overJetStream, overJetStreamWith, stream } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

const maxBytes = 16 * 1024;

let database: TestDatabase;
let nats: NatsServer;
let world: World;
const warnings: string[] = [];
const notes: string[] = [];

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await world.close();
});
afterAll(async () => {
  await nats.stop();
  await database.drop();
});

async function open(topology = overJetStreamWith({ maxBytes })): Promise<void> {
  world = await World.open(topology, { database: database.url, broker: nats.url });
  // While a file of the stream is purged again and again, the broker now and then drops events at its end that nobody
  // has acknowledged.
  world.recovery = { checkEveryMs: 500, graceMs: 1_000, untakenMs: 90_000 };
  warnings.length = notes.length = 0;
  jest.spyOn(Logger.prototype, 'log').mockImplementation((message: unknown) => void notes.push(String(message)));
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void warnings.push(String(message)));
}

async function ready(): Promise<void> {
  for (const service of ['orders', 'mail'] as const) {
    await eventually(() => expect(world.app(service).get(Events).status()).toEqual({ ready: true }));
  }
}

/** In order of numbers: events that were refused for a moment come after those behind them. */
async function noted(consumer: string): Promise<number[]> {
  return (await world.noted(consumer)).sort((one, other) => one - other);
}

/** Places orders until the stream takes no more of their events. Returns their numbers. */
async function fill(): Promise<number[]> {
  const numbers: number[] = [];
  const isFull = () => warnings.some((line) => line.includes('maximum bytes exceeded'));
  while (!isFull()) {
    // Far more than fits.
    expect(numbers.length).toBeLessThan(1_000);
    const batch = Array.from({ length: 25 }, (_, index) => numbers.length + index);
    await world.orders.place(batch);
    numbers.push(...batch);
    // However slow the broker is, nothing is added before it has taken or refused all that there is.
    await eventually(async () => expect(isFull() || (await world.waiting()).length === 0).toBe(true));
  }
  return numbers;
}

describe('a full event stream', () => {
  it('raises an alarm before, loses nothing of a stopped consumer, and recovers by itself', async () => {
    await open();
    await world.start();
    await ready();
    await world.stop('mail');
    const numbers = await fill();
    const events = world.app('orders').get(Events);
    await eventually(() => expect(events.streamUsage()?.bytes).toBeGreaterThan(maxBytes * 0.9));
    expect(warnings.toSorted()).toEqual([
      'Cannot publish events; they wait in the outbox: the event stream rejects events: maximum bytes exceeded',
      expect.stringMatching(
        /^The event stream ATOLL_EVENTS is \d+ % full .* Furthest behind: mail_\w+, with \d+ events\.$/,
      ),
    ]);
    // Calls are still answered, so the service stays ready.
    expect(events.status()).toEqual({ ready: true });
    expect((await world.waiting()).map(({ attempts }) => attempts)).toContain(0);

    await world.start();
    // What the broker refused at first may come after what followed, asked for again.
    for (const consumer of ['letters', 'statistics'])
      await eventually(async () => expect(await noted(consumer)).toEqual(numbers));
    await eventually(() => expect(events.streamUsage()?.bytes).toBeLessThan(maxBytes / 2));
    const end = 'The event stream ATOLL_EVENTS is no longer near its limit.';
    await eventually(() => expect(notes).toContain(end));
  });

  it('that cannot be looked at is a warning once, however often that fails, and once more when it fails again', async () => {
    await open();
    let isFailing = true;
    let looks = 0;
    jest.spyOn(StreamMonitor.prototype, 'check').mockImplementation(() => {
      looks += 1;
      return isFailing ? Promise.reject(new Error('no quorum')) : Promise.resolve();
    });
    const some = () => {
      const wanted = looks + 3;
      return eventually(() => expect(looks).toBeGreaterThanOrEqual(wanted));
    };
    await world.start('orders');
    await some();
    const warning = 'Cannot check how full the event stream is; retrying: Error: no quorum';
    expect(warnings).toEqual([warning]);
    isFailing = false;
    await some();
    isFailing = true;
    await some();
    expect(warnings).toEqual([warning, warning]);
  });

  it('takes events without end where consumers follow', async () => {
    await open();
    await world.start();
    await ready();
    const numbers = Array.from({ length: 200 }, (_, index) => index);
    for (let from = 0; from < numbers.length; from += 25) await world.orders.place(numbers.slice(from, from + 25));
    // What the broker let go is asked for again, after the consumers have come to rest.
    await eventually(async () => expect(await noted('letters')).toEqual(numbers));
  });

  it('keeps what one consumer has not acknowledged, however far the others are', async () => {
    await open();
    await world.start();
    await ready();
    const stuck = new Promise<void>((resolve) => {
      world.script = async (_payload, consumer) => {
        if (consumer === 'letters') await released;
        resolve();
      };
    });
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const numbers = await fill();
    await stuck;
    const { state } = await (await managerOf(world.observer.nats)).streams.info(stream);
    expect(state.first_seq).toBe(1);
    release();
    await eventually(async () => expect(await noted('letters')).toEqual(numbers));
  });

  it('is not cut to a limit that is smaller than what it holds', async () => {
    await open(overJetStream);
    await world.start();
    await ready();
    await world.stop('mail');
    await world.orders.place(Array.from({ length: 60 }, (_, index) => index));
    await eventually(async () => expect(await world.waiting()).toEqual([]));
    const manager = await managerOf(world.observer.nats);
    const { state } = await manager.streams.info(stream);
    await world.stop();
    // An operator's own limit and copies hold until the settings name others.
    await manager.streams.update(stream, { max_bytes: 2 * 1024 ** 2, max_age: nanos(3_600_000) });
    await world.start('orders');
    await eventually(() => expect(world.app('orders').get(Events).status()).toEqual({ ready: true }));
    expect((await manager.streams.info(stream)).config).toMatchObject({ max_bytes: 2 * 1024 ** 2, max_age: 0 });
    await world.restartWith(overJetStreamWith({ maxBytes: 1_000 }));
    await ready();
    const { config } = await manager.streams.info(stream);
    expect(config.max_bytes).toBe(state.bytes);
    await world.settled();
    expect(await world.noted('letters')).toHaveLength(60);
  });

  it('lets an event that the stream refuses for itself wait by itself', async () => {
    await open();
    await world.start();
    await ready();
    const manager = await managerOf(world.observer.nats);
    await manager.streams.update(stream, { max_msg_size: 10 });
    await world.orders.place([1]);
    await eventually(async () => {
      const waiting = await world.waiting();
      expect(waiting).toMatchObject([{ last_error: expect.stringMatching('exceeds maximum allowed') }]);
      expect(waiting[0]?.attempts).toBeGreaterThanOrEqual(1);
    });
    expect(warnings).toEqual([]);
    await manager.streams.update(stream, { max_msg_size: -1 });
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('has as many copies as the settings say', async () => {
    await open(overJetStreamWith({ replicas: 3 }));
    await world.start();
    // One server cannot hold three copies, and says so.
    await eventually(() =>
      expect(warnings).toContainEqual(expect.stringMatching(/JetStream setup failed; retrying: .*replicas/)),
    );
    expect(await (await jetstreamManager(world.observer.nats)).streams.list().next()).toEqual([]);
  });
});
