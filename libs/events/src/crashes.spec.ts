import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DeadLetters } from './dead-letters.js';
import { Events } from './events.js';
import { eventually } from './world/eventually-fixture.js';
import { specRetries, shopDatabase } from './world/shop-fixture.js';
import { inProcess, overJetStream } from './world/topology-fixture.js';
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

describe.each([inProcess, overJetStream])('an event, $name, has its effect once', (topology) => {
  let world: World;

  beforeAll(async () => {
    world = await World.open(topology, { database: database.url, broker: nats.url });
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  async function expectEachOnce(numbers: number[]): Promise<void> {
    await world.settled();
    expect((await world.noted('letters')).sort()).toEqual(numbers);
    expect((await world.noted('statistics')).sort()).toEqual(numbers);
  }

  it('when the process dies between commit and publish', async () => {
    await world.start();
    await world.crashDuring('beforePublish', [1, 2]);
    expect(await world.waiting()).toHaveLength(2);
    await world.restartDead();
    await expectEachOnce([1, 2]);
  });

  it('when the process dies between publish and the mark that it was', async () => {
    await world.start();
    await world.crashDuring('afterPublish', [1, 2]);
    await world.restartDead();
    await expectEachOnce([1, 2]);
  });

  it('when the consumer dies before it acknowledges', async () => {
    await world.start();
    await world.crashDuring('afterTake', [1, 2]);
    await world.restartDead();
    await expectEachOnce([1, 2]);
  });

  it('when the consumer dies inside of the effect', async () => {
    await world.start();
    await world.crashDuring('inEffect', [1, 2]);
    await world.restartDead();
    await expectEachOnce([1, 2]);
  });

  it('when the database was away', async () => {
    await world.start();
    await world.orders.place([1, 2, 3]);
    world.cut('database');
    await eventually(() => expect(world.app('orders').get(Events).status().ready).toBe(false));
    await expect(world.orders.place([4])).rejects.toMatchObject({ code: 'unavailable' });
    world.mend('database');
    await eventually(() => world.orders.place([5]));
    await expectEachOnce([1, 2, 3, 5]);
  });

  it('when the database breaks in the middle of each of many tries, which uses up none', async () => {
    await world.start();
    await eventually(() => expect(world.app('mail').get(Events).status().ready).toBe(true));
    let outages = 0;
    world.script = (payload, consumer) => {
      if (consumer === 'letters' && payload.number === 1 && outages < specRetries.maxTries + 2) {
        outages += 1;
        world.cut('database');
        setTimeout(() => world.mend('database'), 100);
      }
      return Promise.resolve();
    };
    await world.orders.place([1]);
    await expectEachOnce([1]);
    expect(outages).toBe(specRetries.maxTries + 2);
    expect(await world.observer.database.query('SELECT FROM mail.dead_letter')).toEqual([]);
  });

  it('or becomes a dead letter if each try ends the process, and the events after it flow', async () => {
    expectErrors(/is a dead letter after 3 tries: The process ended during each try/);
    await world.start();
    world.script = async (_payload, consumer) => {
      // The other consumer goes first, so that no crash is its own.
      if (consumer === 'letters' && (await world.noted('statistics')).length === 0)
        throw new AppError('unavailable', 'Not yet.');
    };
    world.crashAlwaysAt('inEffect', 'letters');
    await world.orders.place([1]);
    await eventually(async () => {
      await world.restartDead();
      expect(await world.observer.database.query('SELECT FROM mail.dead_letter')).toHaveLength(1);
    });
    world.crashNoMore();
    await world.orders.place([2]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([2]);
    const letters = await world.app('mail').get(DeadLetters).list();
    expect(letters).toMatchObject([
      { consumer: 'letters', lastError: 'The process ended during each try.', tries: specRetries.maxTries },
    ]);
  });
});
