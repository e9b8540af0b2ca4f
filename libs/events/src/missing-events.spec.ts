import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { expectErrors, runs, startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { DeadLetters } from './dead-letters.js';
import { Events } from './events.js';
import { eventually } from './world/eventually-fixture.js';
import { looksFor } from './world/looks-fixture.js';
import { specRecovery, shopDatabase } from './world/shop-fixture.js';
import { LossyCourier, type Fate } from './world/lossy-courier-fixture.js';
import { inProcess, overJetStream, overJetStreamWith, type Topology } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
});
afterAll(async () => {
  await nats.stop();
  await database.drop();
});

async function expectEachOnce(world: World): Promise<void> {
  await eventually(async () => {
    expect(await world.waiting()).toEqual([]);
    const placed = await world.placed();
    for (const consumer of ['letters', 'statistics']) {
      expect((await world.noted(consumer)).toSorted((one, other) => one - other)).toEqual(placed);
    }
  });
}

type Step = { place: number } | 'release' | 'wipe' | 'restart' | 'replica';
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ place: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.constantFrom<Step>('release', 'wipe', 'restart', 'replica') },
);
const fate = fc.constantFrom<Fate>('delivered', 'dropped', 'doubled', 'held');

describe('a consumer', () => {
  it(
    'has the effect of every committed event once, in one process or two, whatever is dropped, doubled, reordered or wiped between outbox and inbox, and whatever fails',
    async () => {
      let fates: Iterator<Fate> = [][Symbol.iterator]();
      const courier = new LossyCourier(() => (fates.next().value as Fate | undefined) ?? 'dropped');
      const topology: Topology = { ...inProcess, openCourier: () => ({ courier, close: () => Promise.resolve() }) };
      const world = await World.open(topology, { database: database.url, broker: nats.url });
      try {
        await fc.assert(
          fc.asyncProperty(
            fc.array(step, { minLength: 2, maxLength: 8 }),
            fc.array(fate, { maxLength: 40 }),
            fc.array(fc.boolean(), { maxLength: 20 }),
            async (steps, given, failing) => {
              await world.reset();
              world.recovery = specRecovery;
              fates = given[Symbol.iterator]();
              const fails = failing[Symbol.iterator]();
              world.script = () => {
                if (fails.next().value === true) throw new AppError('unavailable', 'Another service is away.');
              };
              await world.start();
              let [number, isAlone] = [0, true];
              for (const each of steps) {
                if (each === 'replica') {
                  if (isAlone) await world.startReplica('mail');
                  isAlone = false;
                } else if (each === 'release') courier.release();
                else if (each === 'wipe') courier.wipe();
                else if (each === 'restart') {
                  await world.stop();
                  await world.start();
                  isAlone = true;
                } else await world.orders.place(Array.from({ length: each.place }, () => (number += 1)));
              }
              await expectEachOnce(world);
              courier.release();
              await expectEachOnce(world);
              // As of the next look.
              await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(0));
            },
          ),
          runs(25),
        );
      } finally {
        await world.close();
      }
    },
    300_000 * timeoutFactor,
  );
});

describe('an event that the broker has lost and whose effect failed', () => {
  const courier = new LossyCourier(() => 'dropped');
  let world: World;
  let tries: number;
  beforeAll(async () => {
    const topology: Topology = { ...inProcess, openCourier: () => ({ courier, close: () => Promise.resolve() }) };
    world = await World.open(topology, { database: database.url, broker: nats.url });
  });
  beforeEach(() => {
    tries = 0;
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  /** The effects of the second order fail so often. */
  const failing = (times: number) => {
    world.script = ({ number }) => {
      if (number === 2 && (tries += 1) <= times) throw new AppError('unavailable', 'Another service is away.');
    };
  };

  it('has it in the end where it failed when it was fetched, and counts as missing until then', async () => {
    world.recovery = { ...specRecovery, untakenMs: 3_600_000 };
    failing(Infinity);
    await world.start();
    await world.orders.place([1, 2, 3]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1, 3]));
    await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(2));
    failing(0);
    await expectEachOnce(world);
    await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(0));
  });

  it('is a dead letter after as many tries as one that the broker brings, and holds up no other', async () => {
    expectErrors(/orders\.placed .* is a dead letter after 3 tries/);
    world.recovery = { ...specRecovery, untakenMs: 3_600_000 };
    world.script = ({ number }) => {
      if (number === 2) throw new Error('It fails always.');
    };
    await world.start();
    const numbers = Array.from({ length: 30 }, (_, at) => at + 1);
    await world.orders.place(numbers);
    await eventually(async () => {
      const letters = await world.app('mail').get(DeadLetters).list();
      expect(letters.map(({ tries }) => tries)).toEqual([3, 3]);
      expect(await world.noted('letters')).toEqual(numbers.filter((number) => number !== 2));
    });
    await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(0));
  });

  it('has it in the end where the process that would have tried it again is gone', async () => {
    world.recovery = { ...specRecovery, untakenMs: 3_600_000 };
    failing(Infinity);
    await world.start();
    await world.orders.place([1, 2, 3]);
    const untaken = () => world.observer.database.query<object[]>('SELECT FROM mail.inbox WHERE taken_at IS NULL');
    await eventually(async () => {
      expect(await world.noted('letters')).toEqual([1, 3]);
      expect(await untaken()).toHaveLength(2);
    });
    await world.stop();
    world.recovery = specRecovery;
    failing(0);
    await world.start();
    await expectEachOnce(world);
    expect(await untaken()).toEqual([]);
  });
});

describe('a service over JetStream', () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(overJetStream, { database: database.url, broker: nats.url });
  });
  beforeEach(() => {
    world.recovery = specRecovery;
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('has every event in the end when the store of the broker is wiped under load, again and again', async () => {
    await world.start();
    let wiping = true;
    const wiped = (async () => {
      for (let wipes = 0; wipes < 4; wipes += 1) {
        const before = (await world.noted('letters')).length;
        await eventually(async () => expect((await world.noted('letters')).length).toBeGreaterThan(before));
        await overJetStream.reset(world.observer);
      }
      wiping = false;
    })();
    let number = 0;
    while (wiping) await world.orders.place([(number += 1)]);
    await wiped;
    await expectEachOnce(world);
    await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(0));
  });

  it('says what its publisher does not keep any more, goes on, and counts it', async () => {
    expectErrors(/letters: orders\.placed after position \d, up to 3, are lost/, /statistics: .* are lost/);
    await world.start();
    await eventually(() => expect(world.app('mail').get(Events).status()).toEqual({ ready: true }));
    await world.orders.place([1]);
    await world.settled();
    // A consumer misses nothing that was published before it began to count.
    const begun = `SELECT FROM mail.event_progress WHERE event_name = 'orders.placed'`;
    await eventually(async () => expect(await world.observer.database.query(begun)).toHaveLength(2));
    await world.stop('mail');
    await world.orders.place([2, 3]);
    await eventually(async () => expect(await world.waiting()).toEqual([]));
    await overJetStream.reset(world.observer);
    await world.observer.database.query('DELETE FROM orders.outbox_published WHERE position <= 3');
    await world.start();
    await world.orders.place([4]);
    await eventually(() => expect(world.app('mail').get(Events).missing()).toBe(2));
    await eventually(async () => expect(await world.noted('letters')).toEqual([1, 4]));
  });
});

describe('a service that was killed', () => {
  it('has what it had in hand before the broker delivers that again', async () => {
    const patient = overJetStreamWith({ ackWaitMs: 600_000 });
    const world = await World.open(patient, { database: database.url, broker: nats.url });
    try {
      world.recovery = specRecovery;
      await world.start();
      await world.crashDuring('inEffect', [1, 2]);
      await world.restartDead();
      await expectEachOnce(world);
    } finally {
      await world.close();
    }
  });
});

describe('a publisher that does not answer', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('is told of in the log after a minute, once, and not again when it has answered', async () => {
    const lines: string[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void lines.push(String(line)));
    let nowMs = 0;
    jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
    let [isAway, asked] = [true, 0];
    const received = { progress: async () => ({ position: 3, lost: 0 }), look: async () => ({ last: 3, gaps: [] }) };
    const source = {
      read: async () => {
        asked += 1;
        if (isAway) throw new AppError('unavailable', 'It is away.');
        return { events: [], forgotten_up_to: 0, has_none: true };
      },
    };
    const missing = looksFor(received, source, { checkEveryMs: 1 });
    const lookAt = async (ms: number) => {
      nowMs = ms;
      for (const before = asked; asked < before + 2;) await new Promise((resolve) => setImmediate(resolve));
    };
    missing.start();
    await lookAt(0);
    await lookAt(59_000);
    expect(lines).toEqual([]);
    await lookAt(60_000);
    const line =
      'letters: cannot reach orders to check for missing orders.placed, for a minute or longer; missing events stay undetected meanwhile.';
    expect(lines).toEqual([line]);
    isAway = false;
    await lookAt(61_000);
    isAway = true;
    await lookAt(120_000);
    expect(lines).toEqual([line]);
    await missing.stop();
  });
});

it('gaps that touch are asked for together, so that what is left of many events comes by pages', async () => {
  const gaps = [1, 2, 3, 7, 8].map((after) => ({ after, upTo: after + 1 }));
  const received = { progress: async () => ({ position: 1, lost: 0 }), look: async () => ({ last: 9, gaps }) };
  const asked: [number, number | undefined][] = [];
  const done = Promise.withResolvers<void>();
  const source = {
    read: async (_publisher: string, { after, up_to }: { after: number; up_to?: number }) => {
      asked.push([after, up_to]);
      // The last question of a look is for what comes after the last event.
      if (up_to === undefined) done.resolve();
      return { events: [], forgotten_up_to: 0, has_none: false };
    },
  };
  const missing = looksFor(received, source);
  missing.start();
  await done.promise;
  await missing.stop();
  expect(asked).toEqual([
    [1, 4],
    [7, 9],
    [9, undefined],
  ]);
});

it('what was fetched in a look is told of in one line of the log, with how many failed', async () => {
  const lines: string[] = [];
  const warn = jest
    .spyOn(Logger.prototype, 'warn')
    .mockImplementation((line: unknown) => void lines.push(String(line)));
  const gaps = [
    { after: 1, upTo: 3 },
    { after: 5, upTo: 6 },
  ];
  const received = { progress: async () => ({ position: 1, lost: 0 }), look: async () => ({ last: 9, gaps }) };
  const done = Promise.withResolvers<void>();
  const source = {
    read: async (_publisher: string, { after, up_to = 0 }: { after: number; up_to?: number }) => {
      if (up_to === 0) done.resolve();
      const positions = Array.from({ length: Math.max(0, up_to - after) }, (_, at) => after + at + 1);
      const events = positions.map((position) => ({ position, id: `${position}`, payload: {} }) as never);
      return { events, forgotten_up_to: 0, has_none: false };
    },
  };
  const take = async ({ id }: { id: string }) => (id === '6' ? { retryAfterMs: 60_000 } : 'done');
  const missing = looksFor(received, source, { take });
  missing.start();
  await done.promise;
  await missing.stop();
  warn.mockRestore();
  expect(lines).toEqual([
    'letters: 3 missing orders.placed fetched from orders; 1 of them failed and will be retried.',
  ]);
});

it('looks are further and further apart; where the stream may have been made anew they begin again, also for what came last', async () => {
  const asked: number[] = [];
  let last = 9;
  const received = { progress: async () => ({ position: 1, lost: 0 }), look: async () => ({ last, gaps: [] }) };
  const source = {
    read: async (_publisher: string, { after }: { after: number }) => {
      asked.push(after);
      return { events: [], forgotten_up_to: 0, has_none: false };
    },
  };
  const missing = looksFor(received, source, { checkEveryMs: 3_000 });
  jest.useFakeTimers();
  try {
    const countOfLooks = async (ms: number) => {
      asked.length = 0;
      await jest.advanceTimersByTimeAsync(ms);
      return asked.length;
    };
    const countsOfLooks = async () => [
      await countOfLooks(0),
      await countOfLooks(1_000),
      await countOfLooks(2_000),
      await countOfLooks(2_000),
      await countOfLooks(1_000),
    ];
    missing.start();
    expect(await countsOfLooks()).toEqual([1, 1, 1, 0, 1]);
    // Events come in: a look by time would leave what is behind the last one to the next look.
    last = 10;
    missing.lookNow();
    expect(await countsOfLooks()).toEqual([1, 1, 1, 0, 1]);
    await missing.stop();
  } finally {
    jest.useRealTimers();
  }
});

it('a service that stops does not wait for all pages of what it misses', async () => {
  let page = 0;
  const received = {
    progress: async () => ({ position: 0, lost: 0 }),
    look: async () => ({ last: 0, gaps: [{ after: 0, upTo: 9_999 }] }),
  };
  const stopped = Promise.withResolvers<void>();
  const source = {
    read: async () => {
      page += 1;
      if (page === 2) stopped.resolve(missing.stop());
      const events = page < 5 ? [{ position: page, id: `${page}`, payload: {} } as never] : [];
      return { events, forgotten_up_to: 0, has_none: false };
    },
  };
  const missing = looksFor(received, source);
  missing.start();
  await stopped.promise;
  expect(page).toBe(2);
});
