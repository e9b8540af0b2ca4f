import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DatabaseModule, newId } from '@atoll/database';
import { createDatabase, runs, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { ReceivedEvents } from './received-events.js';

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
  expect(await events.look(sequence, 0, { graceMs: 0, untakenMs: 0 })).toEqual({ last: 5, gaps: [] });
  expect(await events.progress(sequence)).toEqual({ position: 9, lost: 0 });
});

it('what came and has had no effect for long is a gap, but where it times out; and the last is the last, however much lies behind', async () => {
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
  expect(await events.look(sequence, 0, { graceMs: 5_000, untakenMs: 90_000 })).toEqual({
    last: 20_100,
    gaps: [
      { after: 3, upTo: 5 },
      { after: 6, upTo: 7 },
      { after: 8, upTo: 9 },
    ],
  });
  expect(await events.progress(sequence)).toEqual({ position: 3, lost: 0 });
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
