import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { EventsAfter } from '@atoll/contracts';
import { DatabaseModule, newId } from '@atoll/database';
import { createDatabase, runs, type TestDatabase } from '@atoll/testing';
import { Logger, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DomainEvent, Outcome } from './courier.js';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { MissingEvents } from './missing-events.js';
import { ReceivedEvents } from './received-events.js';
import { eventually } from './world/eventually-fixture.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'received');
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
let app: INestApplicationContext;
beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'received', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options));
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

it('law: the publishers of an event are those of which anything has come with a position, or is known from before', async () => {
  const name = fc.constantFrom('a', 'b', 'c');
  const received = fc.record({ consumer: name, publisher: name, event: name, position: fc.option(fc.nat({ max: 9 })) });
  const known = fc.uniqueArray(fc.record({ consumer: name, publisher: name, event: name }), {
    selector: ({ consumer, publisher, event }) => consumer + publisher + event,
    maxLength: 4,
  });
  const source = app.get(DataSource);
  await fc.assert(
    fc.asyncProperty(
      fc.array(received, { maxLength: 12 }),
      known,
      name,
      name,
      async (rows, progress, consumer, event) => {
        await source.query('TRUNCATE inbox, event_progress');
        for (const row of rows) {
          await source.query(
            'INSERT INTO inbox (consumer, event_id, publisher, event_name, position) VALUES ($1, $2, $3, $4, $5)',
            [...[row.consumer, newId(), row.publisher, row.event, row.position]],
          );
        }
        for (const row of progress) {
          await source.query(
            'INSERT INTO event_progress (consumer, publisher, event_name, position) VALUES ($1, $2, $3, 1)',
            [...[row.consumer, row.publisher, row.event]],
          );
        }
        const those = [...rows.filter(({ position }) => position !== null), ...progress].filter(
          (row) => row.consumer === consumer && row.event === event,
        );
        const expected = [...new Set(those.map(({ publisher }) => publisher))].toSorted();
        expect((await new ReceivedEvents(source).publishersOf(consumer, event)).toSorted()).toEqual(expected);
      },
    ),
    runs(60),
  );
});

const aSequence = () => ({ consumer: newId(), publisher: 'orders', eventName: 'orders.placed' });

it('what a consumer has without a gap never goes back, whoever looks late', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 9);
  for (let position = 1; position <= 5; position += 1)
    await source.query(
      `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, taken_at) VALUES ($1, $2, $3, $4, $5, $6, now())`,
      [sequence.consumer, newId(), sequence.publisher, sequence.eventName, position, position - 1],
    );
  expect(await events.look(sequence, 0, { graceMs: 0, untakenMs: 0 })).toMatchObject({
    last: 5,
    gaps: [],
    due: [],
    untaken: 0,
  });
  expect(await events.progress(sequence)).toEqual({ position: 9, lost: 0 });
});

it('what came and has had no effect for long is due, but where it times out; and the last is the last, however much lies behind', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 0);
  const come = (position: number, previous: number, more: string) =>
    source.query(
      `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, received_at, taken_at, begun_by, timed_out_at)
       SELECT $1, $2, $3, $4, $5::bigint, $6::bigint, ${more}`,
      [sequence.consumer, newId(), sequence.publisher, sequence.eventName, position, previous],
    );
  await come(3, 0, `now() - interval '1 hour', now(), NULL, NULL`);
  await come(5, 3, `now() - interval '91 s', NULL, NULL, NULL`);
  await come(6, 5, `now() - interval '30 s', NULL, NULL, NULL`);
  await come(7, 6, `now() - interval '91 s', NULL, gen_random_uuid(), NULL`);
  await come(8, 7, `now() - interval '1 hour', NULL, NULL, now() - interval '19 minutes'`);
  await come(9, 8, `now() - interval '1 hour', NULL, NULL, now() - interval '21 minutes'`);
  await source.query(
    `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, taken_at)
     SELECT $1, gen_random_uuid(), $2, $3, position, position - 1, now() FROM generate_series(10, 20100) position`,
    [sequence.consumer, sequence.publisher, sequence.eventName],
  );
  expect(await events.look(sequence, 0, { graceMs: 5_000, untakenMs: 90_000 })).toMatchObject({
    last: 20_100,
    gaps: [],
    due: [
      { after: 8, upTo: 9 },
      { after: 3, upTo: 5 },
      { after: 6, upTo: 7 },
    ],
    untaken: 3,
  });
  expect(await events.progress(sequence)).toEqual({ position: 3, lost: 0 });
});

it('behind an event that fails for long a gap is found however far away it is, once its time of grace is over', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 0);
  await source.query(
    `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, taken_at, received_at)
     SELECT $1, gen_random_uuid(), $2, $3, position, CASE position WHEN 20500 THEN 20400 ELSE position - 1 END,
            CASE WHEN position > 1 THEN now() END, now() - CASE position WHEN 20500 THEN interval '1 s' ELSE '9 s' END
     FROM generate_series(1, 20500) position WHERE position <= 20300 OR position = 20500`,
    [sequence.consumer, sequence.publisher, sequence.eventName],
  );
  const looks: unknown[] = [];
  let filledTo = 0;
  for (const graceMs of [500, 5_000, 500]) {
    const found = await events.look(sequence, 0, { graceMs, untakenMs: 90_000 }, filledTo);
    ({ filledTo } = found);
    looks.push([found.gaps, filledTo]);
  }
  expect(looks).toEqual([
    [[], 20_000],
    [[], 20_300],
    [[{ after: 20_300, upTo: 20_400 }], 20_300],
  ]);
});

it('behind an event that fails for long what was fetched and failed is due however far away it is, and counts as missing', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 0);
  await source.query(
    `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, taken_at, fetch_at)
     SELECT $1, gen_random_uuid(), $2, $3, position, position - 1, CASE WHEN position NOT IN (1, 20400, 20450) THEN now() END,
            CASE position WHEN 20400 THEN now() WHEN 20450 THEN now() + interval '1 hour' END
     FROM generate_series(1, 20500) position`,
    [sequence.consumer, sequence.publisher, sequence.eventName],
  );
  expect(await events.look(sequence, 0, { graceMs: 5_000, untakenMs: 90_000 })).toMatchObject({
    due: [{ after: 20_399, upTo: 20_400 }],
    untaken: 2,
  });
});

it('a gap is found also before where there was none, as after a failover to a database that has lost what came last', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 0);
  await source.query(
    `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous)
     SELECT $1, gen_random_uuid(), $2, $3, position, position - 1 FROM unnest(ARRAY[1, 2, 5, 9]) position`,
    [sequence.consumer, sequence.publisher, sequence.eventName],
  );
  const { gaps } = await events.look(sequence, 0, { graceMs: 0, untakenMs: 90_000 }, 7);
  expect(gaps).toEqual([
    { after: 2, upTo: 4 },
    { after: 5, upTo: 8 },
  ]);
});

it('a gap is given up once, and where it is next', async () => {
  const events = new ReceivedEvents(app.get(DataSource));
  const [sequence, other] = [aSequence(), aSequence()];
  await events.begin(sequence, 5);
  await events.begin(other, 5);
  expect(await events.giveUp(sequence, 3, 4)).toBe(false);
  expect(await events.giveUp(sequence, 6, 8)).toBe(false);
  expect(await events.giveUp(sequence, 5, 7)).toBe(true);
  expect(await events.giveUp(sequence, 5, 7)).toBe(false);
  expect(await events.progress(sequence)).toEqual({ position: 7, lost: 1 });
  expect(await events.progress(other)).toEqual({ position: 5, lost: 0 });
});

const eventAt = (position: number, name = 'orders.placed'): DomainEvent => ({
  ...{ id: newId(), name, payload: {}, occurredAt: new Date().toISOString() },
  ...{ publisher: 'orders', position, previous: position - 1 },
});

it('law: of events that are claimed at the same time each goes to one, and none that has come or is known to be handled', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const positions = fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(positions, { minLength: 2, maxLength: 3 }),
      positions,
      fc.nat({ max: 10 }),
      async (asked, come, progress) => {
        const sequence = aSequence();
        await events.begin(sequence, progress);
        const all = Array.from({ length: 20 }, (_, at) => eventAt(at + 1));
        const at = (these: number[]) => these.map((position) => all[position - 1]!);
        await source.query(`INSERT INTO inbox (consumer, event_id) SELECT $1, unnest($2::uuid[])`, [
          sequence.consumer,
          at(come).map(({ id }) => id),
        ]);
        const claims = await Promise.all(asked.map((each) => events.claim(sequence, at(each), 90_000)));
        const claimed = claims.flatMap((ids) => [...ids]);
        const free = [...new Set(asked.flat())].filter((each) => each > progress && !come.includes(each));
        expect(claimed.toSorted()).toEqual(
          at(free)
            .map(({ id }) => id)
            .toSorted(),
        );
      },
    ),
    runs(40),
  );
});

it('what was claimed is due when its time is over, or to which it was postponed, the longest due first; and goes to one that claims it then, unless it is handled or in hand', async () => {
  const [source, events] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const sequence = aSequence();
  await events.begin(sequence, 0);
  const all = Array.from({ length: 102 }, (_, at) => eventAt(at + 1));
  const [first, second, third] = all as [DomainEvent, DomainEvent, DomainEvent];
  const claimed = async (event: DomainEvent) => [...(await events.claimDue(sequence, [event], 90_000))];
  const { consumer } = sequence;
  await events.claim(sequence, all, 90_000);
  const rules = { graceMs: 0, untakenMs: 0 };
  expect(await events.look(sequence, 0, rules)).toMatchObject({ last: 102, gaps: [], due: [], untaken: 102 });
  await events.postpone(consumer, [all[100]!.id], -2_000);
  await events.postpone(consumer, [second.id], -1_000);
  const others = all.map(({ id }) => id).filter((id) => ![first.id, second.id, all[100]!.id].includes(id));
  await events.postpone(consumer, others, 0);
  const { due } = await events.look(sequence, 0, rules);
  expect(due.map(({ upTo }) => upTo)).toEqual([101, 2, ...Array.from({ length: 98 }, (_, at) => at + 3)]);
  const claims = await Promise.all([1, 2, 3].map(() => claimed(second)));
  expect(claims.flat()).toEqual([second.id]);
  expect(await claimed(first)).toEqual([]);
  await source.transaction(async (manager) => {
    await manager.query('SELECT FROM inbox WHERE consumer = $1 AND event_id = $2 FOR UPDATE', [consumer, third.id]);
    expect(await claimed(third)).toEqual([]);
    await manager.query('UPDATE inbox SET taken_at = now() WHERE consumer = $1 AND event_id = $2', [
      consumer,
      third.id,
    ]);
  });
  expect(await claimed(third)).toEqual([]);
});

it('law: replicas that fetch the same events handle each once, and the others have what one leaves that dies or stops', async () => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const [source, received] = [app.get(DataSource), new ReceivedEvents(app.get(DataSource))];
  const rules = { checkEveryMs: 3_600_000, graceMs: 0, untakenMs: 3_600_000 };
  const name = 'orders.placed';
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 90 }),
      fc.integer({ min: 1, max: 60 }),
      fc.array(fc.constantFrom('dies', 'stops', 'stays'), { minLength: 2, maxLength: 3 }),
      fc.nat({ max: 30 }),
      async (count, pageOf, fates, after) => {
        const sequence = aSequence();
        await received.begin(sequence, 0);
        const all = Array.from({ length: count }, (_, at) => eventAt(at + 1));
        const read = async (_: string, question: EventsAfter) => ({
          events: all
            .slice(question.after, question.up_to)
            .slice(0, pageOf)
            .map(({ occurredAt, ...event }) => ({ ...event, occurred_at: occurredAt }) as never),
          forgotten_up_to: 0,
          has_none: false,
        });
        const tries: [string, number][] = [];
        const [inHand, leftByDead]: [string[], Set<string>] = [[], new Set()];
        const replica = (fate: string) => {
          let claimed: ReadonlySet<string> = new Set();
          const claim: ReceivedEvents['claim'] = async (...given) => (claimed = await received.claim(...given));
          let taken = 0;
          const take = async ({ id }: DomainEvent, attempt: number): Promise<Outcome> => {
            tries.push([id, attempt]);
            if (taken === after && fate === 'stops') void missing.stop();
            if (taken === after && fate === 'dies') {
              for (const each of claimed) if (!tries.some(([one]) => one === each)) leftByDead.add(each);
              leftByDead.add(id);
              await new Promise(() => inHand.push(id));
            }
            taken += 1;
            await source.query('UPDATE inbox SET taken_at = now() WHERE consumer = $1 AND event_id = $2', [
              sequence.consumer,
              id,
            ]);
            return 'done';
          };
          const consumer = { name: sequence.consumer, eventNames: [name], take };
          const awaiting = [{ consumer, events: [{ name, publisher: 'orders' }] }];
          const ofReplica = Object.assign(Object.create(received) as ReceivedEvents, { claim });
          const missing = new MissingEvents(ofReplica, { read }, awaiting, rules);
          missing.start();
          return missing;
        };
        const replicas = ['stays', ...fates].map((fate) => ({ fate, missing: replica(fate) }));
        const living = replicas.filter(({ fate }) => fate === 'stays').map(({ missing }) => missing);
        const allHadBut = (left: ReadonlySet<string>) =>
          eventually(async () => {
            for (const missing of living) missing.lookNow();
            const rows = await source.query<{ id: string; is_taken: boolean }[]>(
              'SELECT event_id AS id, taken_at IS NOT NULL AS is_taken FROM inbox WHERE consumer = $1',
              [sequence.consumer],
            );
            expect(rows).toHaveLength(count);
            expect(new Set(rows.flatMap(({ id, is_taken }) => (is_taken ? [] : [id])))).toEqual(left);
          });
        try {
          await allHadBut(leftByDead);
          for (const { fate, missing } of replicas) if (fate === 'dies') void missing.stop();
          // As when the time of its claims is over.
          await source.query('UPDATE inbox SET fetch_at = now() WHERE consumer = $1', [sequence.consumer]);
          await allHadBut(new Set());
        } finally {
          await Promise.all(living.map((missing) => missing.stop()));
        }
        const again = tries.filter(([id], at) => tries.findIndex(([other]) => other === id) < at);
        expect(again.toSorted()).toEqual(inHand.map((id) => [id, 2]).toSorted());
      },
    ),
    { ...runs(20), endOnFailure: true },
  );
});
