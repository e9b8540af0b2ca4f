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
