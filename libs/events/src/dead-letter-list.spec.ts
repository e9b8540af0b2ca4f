import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
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

  it('comes in the same round as the others, however many there are', async () => {
    const letters = world.app('mail').get(DeadLetters);
    const dataSource = world.app('mail').get(DataSource);
    await dataSource.query(
      `INSERT INTO dead_letter (id, consumer, event_id, event_name, payload, occurred_at, last_error, tries, first_failed_at, last_failed_at, retry_requested_at)
       SELECT gen_random_uuid(), 'nobody', gen_random_uuid(), 'orders.placed', '{}', now(), 'Error', 3, now(), now(), now()
       FROM generate_series(1, 101)`,
    );
    const wait = letters.retryAsked.wait.bind(letters.retryAsked);
    const left: Promise<object[]>[] = [];
    const waits = jest.spyOn(letters.retryAsked, 'wait').mockImplementation((ms) => {
      left.push(dataSource.query<object[]>('SELECT FROM dead_letter WHERE retry_requested_at IS NOT NULL'));
      return wait(ms);
    });
    letters.retryAsked.ring();
    await eventually(() => expect(left.length).toBeGreaterThan(0));
    expect(await left[0]).toEqual([]);
    waits.mockRestore();
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
