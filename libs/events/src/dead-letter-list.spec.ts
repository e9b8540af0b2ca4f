import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { DeadLetterList } from './dead-letter-list.js';
import { DeadLetters } from './dead-letters.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { inProcess } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;
let isMended: boolean;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(inProcess, { database: database.url, broker: nats.url });
});
beforeEach(async () => {
  expectErrors(/letters: orders\.placed .* is a dead letter after 3 tries/);
  isMended = false;
  world.script = (_payload, consumer) => {
    if (consumer === 'letters' && !isMended) throw new Error('the printer is out of paper');
  };
  await world.start();
  await world.orders.place([1]);
  await eventually(async () => expect(await world.app('mail').get(DeadLetters).count()).toBe(1));
});
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

const list = () => new DeadLetterList(world.app('mail').get(DataSource));

describe('a dead letter that an operator wants tried once more', () => {
  it('is handled by the service that runs', async () => {
    const [letter] = await list().latest();
    expect(letter).toMatchObject({ consumer: 'letters', eventName: 'orders.placed', retryRequestedAt: null });
    isMended = true;
    expect(await list().retry(letter?.id ?? '', 20_000)).toEqual({ is: 'handled' });
    expect(await world.noted('letters')).toEqual([1]);
    expect(await list().latest()).toEqual([]);
  });

  it('stays with its error where it fails again, and is not tried by itself', async () => {
    const [letter] = await list().latest();
    const failed = await list().retry(letter?.id ?? '', 20_000);
    expect(failed).toEqual({ is: 'failed', lastError: 'Error: the printer is out of paper' });
    expect(await list().latest()).toMatchObject([{ tries: 4, retryRequestedAt: null }]);
  });

  it('is said to be unknown where there is none', async () => {
    expect(await list().retry(newId(), 0)).toEqual({ is: 'unknown' });
  });

  it('waits for a service that does not run', async () => {
    const [letter] = await list().latest();
    isMended = true;
    expect(await list().retry(letter?.id ?? '', 0)).toEqual({ is: 'waiting' });
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
  });
});
