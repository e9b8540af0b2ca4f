import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DeadLetters } from './dead-letters.js';
import { Events } from './events.js';
import { Outbox } from './outbox.js';
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

describe.each([inProcess, overJetStream])('an event, $name,', (topology) => {
  let world: World;

  beforeAll(async () => {
    world = await World.open(topology, { database: database.url, broker: nats.url });
  });
  beforeEach(async () => {
    await world.start();
    await eventually(() => expect(world.app('mail').get(Events).status()).toEqual({ ready: true }));
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());

  it('reaches each consumer once, with its payload, its id and the request id of its cause', async () => {
    await world.orders.place([7], { requestId: 'request-1' });
    await world.settled();
    const [first, second] = await world.effects();
    expect(first).toMatchObject({ number: 7, request_id: 'request-1', name: 'placed' });
    expect(second).toMatchObject({ number: 7, event_id: first?.event_id });
    expect([first?.consumer, second?.consumer].sort()).toEqual(['letters', 'statistics']);
  });

  it('that is rolled back with its cause reaches nobody', async () => {
    await expect(world.orders.place([1], { fails: true })).rejects.toThrow('rolled back');
    await world.orders.place([2]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([2]);
  });

  it('comes in the order of its making where nothing fails', async () => {
    const numbers = Array.from({ length: 120 }, (_, index) => index);
    await world.orders.place(numbers.slice(0, 60));
    for (const number of numbers.slice(60)) await world.orders.place([number]);
    await world.settled();
    expect(await world.noted('letters')).toEqual(numbers);
  });

  it('delivered twice and out of order has its effect once', async () => {
    await world.orders.place([1, 2, 3]);
    await world.settled();
    for (const event of [...world.published].reverse()) await world.deliverAgain(event);
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 2, 3]);
    expect((await world.noted('statistics')).sort()).toEqual([1, 2, 3]);
  });

  it('is tried again by the consumer that failed, and by no other', async () => {
    let failures = 0;
    world.script = (_payload, consumer) => {
      if (consumer === 'letters' && failures++ < specRetries.maxTries - 1) throw new Error('not yet');
    };
    await world.orders.place([5]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([5]);
    expect(await world.noted('statistics')).toEqual([5]);
    expect(failures).toBe(specRetries.maxTries);
    expect(await world.app('mail').get(DeadLetters).count()).toBe(0);
  });

  it('that fails for good becomes a dead letter of that consumer, and the events after it flow', async () => {
    expectErrors(/is a dead letter after 3 tries/);
    world.script = (payload, consumer) => {
      if (consumer === 'letters' && payload.number === 1) throw new Error('no such address "secret street 5"');
    };
    await world.orders.place([1, 2, 3], { requestId: 'request-2' });
    await world.settled();
    expect(await world.noted('letters')).toEqual([2, 3]);
    expect(await world.noted('statistics')).toEqual([1, 2, 3]);
    const [letter, ...others] = await world.app('mail').get(DeadLetters).list();
    expect(others).toEqual([]);
    expect(letter).toMatchObject({
      consumer: 'letters',
      eventName: 'orders.placed',
      payload: { number: 1 },
      requestId: 'request-2',
      tries: specRetries.maxTries,
      lastError: 'Error: no such address "…"',
    });
    expect(letter?.eventId).toBe(
      world.published.find(({ payload }) => (payload as { number: number }).number === 1)?.id,
    );
    expect(letter?.firstFailedAt.getTime()).toBeLessThanOrEqual(letter?.lastFailedAt.getTime() ?? 0);
  });

  it('whose payload its class refuses becomes a dead letter at once', async () => {
    expectErrors(/is a dead letter after 1 tries: InvalidPayload/);
    const id = '0197f000-0000-7000-8000-000000000001';
    await world.deliverAgain({
      id,
      name: 'orders.placed',
      payload: { number: 'many' },
      occurredAt: new Date().toISOString(),
    });
    await eventually(async () => expect(await world.app('mail').get(DeadLetters).count()).toBe(2));
    const [letter] = await world.app('mail').get(DeadLetters).list();
    expect(letter).toMatchObject({ eventId: id, tries: 1 });
    expect(letter?.lastError).toMatch('not a OrderPlaced: number isInt');
    expect(await world.effects()).toEqual([]);
  });

  it('waits while what its effect needs is away: no try is counted', async () => {
    let triesLeft = specRetries.maxTries + 1;
    world.script = (_payload, consumer) => {
      if (consumer === 'letters' && triesLeft-- > 0) throw new AppError('unavailable', 'The printer is away.');
    };
    await world.orders.place([4]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([4]);
  });

  it('that is a dead letter can be retried: it stays while it fails, and has its effect once when it does not', async () => {
    expectErrors(/is a dead letter after 3 tries/);
    let broken = true;
    world.script = (_payload, consumer) => {
      if (consumer === 'letters' && broken) throw new Error('still broken');
    };
    await world.orders.place([6]);
    await world.settled();
    const deadLetters = world.app('mail').get(DeadLetters);
    const [letter] = await deadLetters.list();
    const id = letter?.id ?? '';
    await expect(deadLetters.retry(id)).rejects.toMatchObject({
      code: 'conflict',
      message: 'The event failed again: Error: still broken',
    });
    expect(await deadLetters.list()).toMatchObject([{ tries: specRetries.maxTries + 1 }]);
    broken = false;
    const [first, second] = await Promise.allSettled([deadLetters.retry(id), deadLetters.retry(id)]);
    expect([first.status, second.status].sort()).toEqual(['fulfilled', 'rejected']);
    expect(await deadLetters.count()).toBe(0);
    expect(await world.noted('letters')).toEqual([6]);
    await expect(deadLetters.retry(id)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('that takes longer than the database allows ends as a dead letter, which holds up no other and can be retried', async () => {
    expectErrors(/is a dead letter after 3 tries: A statement of the effect took longer than the database allows/);
    let isSlow = true;
    world.script = async ({ number }, consumer, { manager }) => {
      if (consumer === 'letters' && number === 1 && isSlow)
        await manager.query(`SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(600)`);
    };
    await world.orders.place([1, 2]);
    await world.settled();
    expect(await world.noted('letters')).toEqual([2]);
    const deadLetters = world.app('mail').get(DeadLetters);
    const [letter] = await deadLetters.list();
    expect(letter).toMatchObject({ payload: { number: 1 }, tries: specRetries.maxTries });
    // An operator asks for it, by whatever way, while it is as slow as before: it is tried once and not for ever.
    const { database: observed } = world.observer;
    await observed.query('UPDATE mail.dead_letter SET retry_requested_at = now()');
    await eventually(async () =>
      expect(await deadLetters.list()).toMatchObject([{ tries: specRetries.maxTries + 1, retryRequestedAt: null }]),
    );
    isSlow = false;
    await observed.query('UPDATE mail.dead_letter SET retry_requested_at = now()');
    await eventually(async () => expect(await deadLetters.count()).toBe(0));
    expect(await world.noted('letters')).toEqual([2, 1]);
  });

  it('goes to those who take it, and to no others', async () => {
    await world.orders.cancel(9);
    await world.settled();
    expect((await world.effects()).map(({ consumer, name }) => [consumer, name])).toEqual([['letters', 'cancelled']]);
    expect(await world.app('orders').get(Outbox).pending()).toBe(0);
  });
});
