import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { allStatementsDuring, startNats, timeoutFactor, type NatsServer, type TestDatabase } from '@atoll/testing';
import { Logger } from '@nestjs/common';
import { CourierAway } from './courier.js';
import { Events } from './events.js';
import { Outbox } from './outbox.js';
import { courierPauseMs } from './relay.js';
import { RelaySession } from './relay-session.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { inProcess } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(inProcess, { database: database.url, broker: nats.url });
});
beforeEach(() => world.start());
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

/** Places an event whose effects have begun, and end when what this returns is called. */
async function placeAndHold(): Promise<() => void> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let entered = 0;
  world.script = async () => {
    entered += 1;
    await released;
  };
  await world.orders.place([1]);
  await eventually(() => expect(entered).toBe(2));
  return release;
}

/** Of the events that were published, the latest day last. */
async function partitions(): Promise<string[]> {
  const found = await world.observer.database.query<{ name: string }[]>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'orders.outbox_published'::regclass ORDER BY 1`,
  );
  return found.map(({ name }) => name);
}

describe('the relay', () => {
  it(
    'is woken by each commit: thirty events, one after the other, do not wait for its next look',
    async () => {
      for (let number = 0; number < 30; number += 1) {
        await world.orders.place([number]);
        await eventually(async () => expect(await world.noted('letters')).toHaveLength(number + 1));
      }
    },
    // Its looks are 5 s apart.
    30_000 * timeoutFactor,
  );

  it(
    'tries an event again when that is due, and not at its next look, though timers come early',
    async () => {
      await world.stop();
      world.retries = { maxTries: 20, firstMs: 20, maxMs: 20 };
      await world.start();
      // As if each timer came so much too early.
      await world.observer.database.query(`
        CREATE FUNCTION orders.be_late() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN NEW.next_attempt_at = NEW.next_attempt_at + interval '3 milliseconds'; RETURN NEW; END $$;
        CREATE TRIGGER be_late BEFORE UPDATE ON orders.outbox FOR EACH ROW EXECUTE FUNCTION orders.be_late()`);
      let tries = 0;
      world.script = async (_payload, consumer) => {
        tries += consumer === 'letters' ? 1 : 0;
        if (tries < 10) throw new Error('the printer is out of paper');
      };
      try {
        await world.orders.place([1]);
        await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
      } finally {
        await world.observer.database.query('DROP FUNCTION orders.be_late CASCADE');
      }
    },
    // Its looks are 5 s apart.
    20_000 * timeoutFactor,
  );

  it('lets an event that cannot be published wait by itself, and stops nothing else', async () => {
    let refusing = true;
    world.beforePublish = ({ payload }) => {
      if ((payload as { number: number }).number === 1 && refusing) throw new Error('larger than "the broker" takes');
    };
    await world.orders.place([1, 2, 3]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([2, 3]));
    await eventually(async () =>
      expect(await world.waiting()).toMatchObject([{ last_error: 'Error: larger than "…" takes' }]),
    );
    expect((await world.waiting())[0]?.attempts).toBeGreaterThan(0);
    expect(await world.app('orders').get(Outbox).pending()).toBe(1);
    refusing = false;
    await world.settled();
    expect(await world.noted('letters')).toEqual([2, 3, 1]);
  });

  it('shows that it lives while it can take no more events, since PostgreSQL ends a session that does not', async () => {
    const begun: string[] = [];
    world.beforePublish = ({ id }) => void begun.push(id);
    const release = await placeAndHold();
    await world.orders.place(Array.from({ length: 300 }, (_, at) => 2 + at));
    await eventually(() => expect(begun).toHaveLength(256));
    const { database } = world.observer;
    const [now] = await database.query<{ at: Date }[]>('SELECT clock_timestamp() AS at');
    try {
      await eventually(async () =>
        expect(
          await database.query(
            `SELECT FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND query_start > $1
             AND (classid::bigint << 32 | objid::bigint) = hashtextextended('atoll relay orders', 0)`,
            [now?.at],
          ),
        ).toHaveLength(1),
      );
    } finally {
      release();
    }
    await world.settled();
  });

  it('takes the lock by which others see that its process lives again as soon as that connection is lost', async () => {
    await world.stop();
    // Its looks are an hour apart.
    world.maxSilenceMs = 4 * 3_600_000;
    await world.start();
    const { database } = world.observer;
    // Of the two connections of each relay the one that holds a lock and does not relay.
    const living = async () =>
      (
        await database.query<{ pid: number }[]>(
          `SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND application_name = 'atoll-orders'
             AND datname = current_database() AND (classid::bigint << 32 | objid::bigint) <> hashtextextended('atoll relay orders', 0)`,
        )
      ).map(({ pid }) => pid);
    await eventually(async () => expect(await living()).toHaveLength(1));
    const before = await living();
    await database.query('SELECT pg_terminate_backend($1)', before);
    await eventually(async () => {
      const now = await living();
      expect([now.length, now[0] === before[0]]).toEqual([1, false]);
    });
  });

  it('says in the log why PostgreSQL ended its session, also where it meant to send a statement on it', async () => {
    const lines: string[] = [];
    const warn = jest
      .spyOn(Logger.prototype, 'warn')
      .mockImplementation((line: unknown) => void lines.push(String(line)));
    const fetch = jest.spyOn(RelaySession.prototype, 'fetch').mockImplementationOnce(async function (
      this: RelaySession,
      ...asked
    ) {
      await world.observer.database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid)
         WHERE locktype = 'advisory' AND datname = current_database() AND (classid::bigint << 32 | objid::bigint) = hashtextextended('atoll relay orders', 0)`,
      );
      await eventually(() => expect(this.lost).toBeDefined());
      return this.fetch(...asked);
    });
    await world.orders.place([1]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
    for (const spy of [warn, fetch]) spy.mockRestore();
    expect(lines.filter((line) => line.startsWith('The relay of events cannot'))).toEqual([
      expect.stringContaining('57P01: terminating connection due to administrator command'),
    ]);
  });

  it('names what the database refuses, as on a full disk, in the reason why it is not ready and in the log', async () => {
    const lines: string[] = [];
    const warn = jest
      .spyOn(Logger.prototype, 'warn')
      .mockImplementation((line: unknown) => void lines.push(String(line)));
    const full = Object.assign(new Error('could not extend file "base/1": No space left on device'), { code: '53100' });
    const refuse = () => Promise.reject(full);
    const fetch = jest.spyOn(RelaySession.prototype, 'fetch').mockImplementation(refuse);
    const open = jest.spyOn(RelaySession, 'open').mockImplementation(refuse);
    try {
      await world.orders.place([1]);
      const events = world.app('orders').get(Events);
      const words =
        'relay of events cannot use the database: Error 53100: could not extend file "…": No space left on device';
      await eventually(() => expect(events.status().reason).toContain(`the ${words}`));
      expect(lines).toContain(`The ${words}`);
    } finally {
      for (const spy of [open, fetch, warn]) spy.mockRestore();
    }
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
  });

  it('says once that it has no connection, however often it tries, and again when it loses the next one', async () => {
    const lines: string[] = [];
    const warn = jest
      .spyOn(Logger.prototype, 'warn')
      .mockImplementation((line: unknown) => void lines.push(String(line)));
    const lost = () => lines.filter((line) => line.startsWith('The relay of events cannot')).length;
    const away = () => Promise.reject(new Error('away'));
    const fetch = jest.spyOn(RelaySession.prototype, 'fetch').mockImplementation(away);
    const open = jest.spyOn(RelaySession, 'open').mockImplementation(away);
    try {
      await world.orders.place([1]);
      const relays = () => new Set(open.mock.calls.map(([dataSource]) => dataSource)).size;
      await eventually(() => expect(open.mock.calls.length).toBeGreaterThan(3 * relays()));
      const before = lost();
      expect(before).toBeLessThanOrEqual(relays());
      open.mockRestore();
      fetch.mockRestore();
      await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
      const next = jest.spyOn(RelaySession.prototype, 'fetch').mockImplementationOnce(away);
      await world.orders.place([2]);
      await eventually(async () => expect(await world.noted('letters')).toEqual([1, 2]));
      expect(lost()).toBe(before + 1);
      next.mockRestore();
    } finally {
      for (const spy of [open, fetch, warn]) spy.mockRestore();
    }
  });

  it('rests again after an event that had to wait', async () => {
    let isFirst = true;
    world.script = () => {
      if (!isFirst) return;
      isFirst = false;
      throw new Error('no stamps');
    };
    await world.orders.place([1]);
    await eventually(async () => expect(await world.noted('letters')).toEqual([1]));
    await world.settled();
    expect(isFirst).toBe(false);
    const sent = await allStatementsDuring(() => delay(500));
    expect(sent.length).toBeLessThan(20);
  });

  it('waits, and counts no attempt, while the courier as a whole is away', async () => {
    let absences = 0;
    world.beforePublish = () => {
      absences += 1;
      throw new CourierAway('gone fishing');
    };
    await world.orders.place([1, 2]);
    await eventually(() => expect(absences).toBeGreaterThanOrEqual(2));
    expect((await world.waiting()).map(({ attempts }) => attempts)).toEqual([0, 0]);
    world.beforePublish = () => undefined;
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 2]);
  });

  it('leaves a courier that is away alone for a while, also where there is more to publish', async () => {
    const triedAtMs: number[] = [];
    world.beforePublish = () => {
      triedAtMs.push(performance.now());
      throw new CourierAway('gone fishing');
    };
    await world.orders.place([1]);
    await eventually(() => expect(triedAtMs.length).toBeGreaterThanOrEqual(1));
    await world.orders.place([2]);
    await eventually(() => expect(triedAtMs.length).toBeGreaterThanOrEqual(2));
    const [first = 0, second = 0] = triedAtMs;
    // A timer may be early by a millisecond.
    expect(second - first).toBeGreaterThanOrEqual(courierPauseMs - 2);
    world.beforePublish = () => undefined;
    await world.settled();
  });

  it('settles more events than it may hold at one time, whatever the order in which they are done', async () => {
    const numbers = Array.from({ length: 300 }, (_, index) => index);
    for (let from = 0; from < numbers.length; from += 20)
      void (await world.orders.place(numbers.slice(from, from + 20)));
    await world.settled();
    expect(world.published).toHaveLength(numbers.length);
    expect(await world.noted('letters')).toEqual(numbers);
  });

  it('is not held up by a clock that is set back', async () => {
    await world.orders.place([1]);
    await world.settled();
    const realNow = Date.now.bind(Date);
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 600_000);
    try {
      await world.orders.place([2]);
      await eventually(async () => expect(await world.noted('letters')).toEqual([1, 2]));
    } finally {
      clock.mockRestore();
    }
  });

  it('settles what it has in hand after days without the database', async () => {
    const release = await placeAndHold();
    for (const name of await partitions()) await world.observer.database.query(`DROP TABLE ${name}`);
    release();
    await world.settled();
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('relays on while a backup reads its tables, at the turn of a day', async () => {
    await world.stop();
    const { database } = world.observer;
    await database.query(`DROP TABLE ${(await partitions()).at(-1)}`);
    await database.query(
      `CREATE TABLE orders.outbox_published_20200101 PARTITION OF orders.outbox_published FOR VALUES FROM ('2020-01-01 00:00+00') TO ('2020-01-02 00:00+00')`,
    );
    const backup = database.createQueryRunner();
    await backup.startTransaction();
    await backup.query('SELECT count(*) FROM orders.outbox_published');
    try {
      await world.start();
      await world.orders.place([1]);
      await world.settled();
    } finally {
      await backup.rollbackTransaction();
      await backup.release();
    }
    expect(await world.noted('letters')).toEqual([1]);
    // The next look of the relay drops what is old.
    await world.stop();
    await world.start();
    await eventually(async () =>
      expect(
        await database.query<{ is_gone: boolean }[]>(
          `SELECT to_regclass('orders.outbox_published_20200101') IS NULL AS is_gone`,
        ),
      ).toEqual([{ is_gone: true }]),
    );
  });

  it('finishes what is in hand before the application ends', async () => {
    const release = await placeAndHold();
    const stopped = world.stop();
    release();
    await stopped;
    expect(await world.waiting()).toEqual([]);
    expect(await world.noted('letters')).toEqual([1]);
  });
});
