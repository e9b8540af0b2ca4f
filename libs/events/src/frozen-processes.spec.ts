import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import { DeadLetters } from './dead-letters.js';
import { eventually } from './world/eventually-fixture.js';
import { Orders, specRetries, shopDatabase, type ShopService } from './world/shop-fixture.js';
import { overJetStream } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(overJetStream, { database: database.url, broker: nats.url });
});
beforeEach(() => world.start());
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

const maxSilenceMs = 1_000 * timeoutFactor;
/** Longer than a process that is not frozen is idle between two statements of a transaction. */
const idleMs = 250 * timeoutFactor;

/** What PostgreSQL does to a session that is idle in a transaction for 20 s. */
async function endIdleTransactions(): Promise<void> {
  await world.observer.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'atoll-mail'
     AND state = 'idle in transaction' AND state_change < clock_timestamp() - $1 * interval '1 millisecond'`,
    [idleMs],
  );
}

describe('a process that freezes in the middle of an effect', () => {
  it('does not keep the event from another, and uses up no try, however many freeze', async () => {
    const processes = specRetries.maxTries + 2;
    for (let replica = 1; replica < processes; replica += 1) await world.startReplica('mail');
    let frozen = 0;
    world.script = async (_payload, consumer, _delivery, freeze) => {
      if (consumer !== 'letters' || frozen === processes - 1) return;
      frozen += 1;
      await freeze();
    };
    await world.orders.place([1]);
    await eventually(async () => {
      await endIdleTransactions();
      expect(await world.noted('letters')).toEqual([1]);
    });
    expect(frozen).toBe(processes - 1);
    world.thaw();
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
    expect(await world.app('mail').get(DeadLetters).list()).toEqual([]);
  });
});

describe('a process that relays and freezes', () => {
  beforeEach(async () => {
    await world.stop();
    world.maxSilenceMs = maxSilenceMs;
    await world.start();
  });

  it('lets another replica relay, and goes on when it wakes', async () => {
    await untilLed('orders');
    await world.startReplica('orders');
    world.freeze('orders');
    await world.app('orders', 1).get(Orders).place([1]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
    world.thaw();
    await world.orders.place([2]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1, 2]));
    await world.settled();
  });

  it('uses up no try of the effect that it was in, though another relays meanwhile', async () => {
    await untilLed('mail');
    let deliveries = 0;
    world.script = async (_payload, consumer, _delivery, freeze) => {
      if (consumer !== 'letters') return;
      deliveries += 1;
      // Nothing is written down before the first delivery.
      if (deliveries === 1) throw new Error('no stamps');
      if (deliveries === 2) await freeze();
    };
    await world.orders.place([1]);
    await eventually(() => expect(deliveries).toBe(2));
    await untilLed('mail', false);
    await world.startReplica('mail');
    await eventually(async () => {
      await endIdleTransactions();
      expect(await world.noted('letters')).toEqual([1]);
    });
    expect(await world.observer.database.query(`SELECT tries FROM mail.inbox WHERE consumer = 'letters'`)).toEqual([
      { tries: 1 },
    ]);
  });
});

/** Until some process of the service has the lock of the one that relays, or none has. */
async function untilLed(service: ShopService, isLed = true): Promise<void> {
  await eventually(async () => {
    const [{ free } = { free: isLed }] = await world.observer.database.query<{ free: boolean }[]>(
      `SELECT pg_try_advisory_xact_lock(hashtextextended('atoll relay ' || $1, 0)) AS free`,
      [service],
    );
    expect(free).toBe(!isLed);
  });
}
