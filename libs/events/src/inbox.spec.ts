import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DatabaseModule, newId, Transactions } from '@atoll/database';
import { createDatabase, runs, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { defaultRetryRules, Inbox } from './inbox.js';
import { orderPlaced } from './world/shop-fixture.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'mail');
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
let app: INestApplicationContext;
let inbox: Inbox;
beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'mail', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options), { abortOnError: false });
  inbox = new Inbox(app.get(Transactions), app.get(DataSource), defaultRetryRules, newId());
});
const clear = () => app.get(DataSource).query('TRUNCATE inbox, event_progress, dead_letter');
beforeEach(clear);
afterAll(async () => {
  await app.close();
  await database.drop();
});

interface Sequence {
  consumer: string;
  publisher: string;
  name: string;
  position: number;
}
const sequence = fc.record<Sequence>({
  consumer: fc.constantFrom('letters', 'statistics'),
  publisher: fc.constantFrom('orders', 'returns'),
  name: fc.constantFrom(orderPlaced.name, 'orders.cancelled'),
  position: fc.integer({ min: 1, max: 3 }),
});
const hourMs = 3_600_000;

const hasAll = ({ consumer, publisher, name, position }: Sequence) =>
  app
    .get(DataSource)
    .query('INSERT INTO event_progress (consumer, publisher, event_name, position) VALUES ($1, $2, $3, $4)', [
      consumer,
      publisher,
      name,
      position,
    ]);

function eventOf(
  { publisher, name, position }: Sequence,
  ageHours: number,
  payload: object = { number: 1 },
): DomainEvent {
  const occurredAt = new Date(Date.now() - ageHours * hourMs).toISOString();
  return { id: newId(), name, payload, occurredAt, publisher, position, previous: position - 1 };
}

async function take(consumer: string, event: DomainEvent, attempt: number): Promise<boolean> {
  let hasRun = false;
  const run = () => Promise.resolve(void (hasRun = true));
  expect(await inbox.take(consumer, { type: orderPlaced, run }, event, attempt)).toBe('done');
  return hasRun;
}

describe('an event', () => {
  it('law: counts as a copy where its consumer has all of its publisher and name up to it, and it is more than 6 days old', async () => {
    const progress = fc.uniqueArray(sequence, {
      selector: ({ consumer, publisher, name }) => `${consumer} ${publisher} ${name}`,
    });
    await fc.assert(
      fc.asyncProperty(
        progress,
        sequence,
        fc.constantFrom(143, 145),
        fc.constantFrom(1, 2),
        async (all, one, ageHours, attempt) => {
          await clear();
          for (const each of all) await hasAll(each);
          const isKnown = all.some(
            ({ consumer, publisher, name, position }) =>
              consumer === one.consumer && publisher === one.publisher && name === one.name && position >= one.position,
          );
          const event = eventOf(one, ageHours);
          const isCopy = isKnown && ageHours > 144;
          expect(await take(one.consumer, event, attempt)).toBe(!isCopy);
          expect(await take(one.consumer, event, 2)).toBe(false);
          // For a copy no row is left.
          expect(await app.get(DataSource).query('SELECT FROM inbox')).toHaveLength(isCopy ? 0 : 1);
        },
      ),
      runs(80),
    );
  });

  it('that its consumer has failed to take is none, however far that one has come', async () => {
    const one = { consumer: 'letters', publisher: 'orders', name: orderPlaced.name, position: 1 };
    const event = eventOf(one, 200);
    await app
      .get(DataSource)
      .query(
        `INSERT INTO inbox (consumer, event_id, publisher, event_name, position, previous, tries) VALUES ($1, $2, $3, $4, 1, 0, 1)`,
        [one.consumer, event.id, one.publisher, one.name],
      );
    await hasAll({ ...one, position: 3 });
    expect(await take('letters', event, 2)).toBe(true);
  });

  it.each([1, 2])(
    'that is a copy is no dead letter either, where its payload is refused by now, at attempt %i',
    async (attempt) => {
      const one = { consumer: 'letters', publisher: 'orders', name: orderPlaced.name, position: 1 };
      await hasAll(one);
      expect(await take('letters', eventOf(one, 200, { number: 'many' }), attempt)).toBe(false);
      expect(await app.get(DataSource).query('SELECT FROM dead_letter')).toEqual([]);
    },
  );
});
