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
const clear = () => app.get(DataSource).query('TRUNCATE inbox, event_progress, event_gap, dead_letter');
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
const twins = {
  consumer: ['letters', 'statistics'],
  publisher: ['orders', 'returns'],
  name: [orderPlaced.name, 'orders.cancelled'],
} as const;
/** As this one, but for one of its names. */
function beside(one: Sequence, field: keyof typeof twins | 'nothing'): Sequence {
  return field === 'nothing' ? one : { ...one, [field]: twins[field].find((name) => name !== one[field]) };
}
const sequence = fc.record<Sequence>({
  consumer: fc.constantFrom(...twins.consumer),
  publisher: fc.constantFrom(...twins.publisher),
  name: fc.constantFrom(...twins.name),
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

/** Its consumer has given up the one event behind `after`. */
const lacks = ({ consumer, publisher, name }: Sequence, after: number) =>
  app
    .get(DataSource)
    .query('INSERT INTO event_gap (consumer, publisher, event_name, after, up_to) VALUES ($1, $2, $3, $4, $5)', [
      consumer,
      publisher,
      name,
      after,
      after + 1,
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
  it('law: counts as a copy where its consumer has all of its publisher and name up to it but for gaps, and it is more than 6 days old', async () => {
    const field = fc.constantFrom<keyof typeof twins | 'nothing'>('nothing', 'consumer', 'publisher', 'name');
    const all = fc.constant({ differsIn: 'nothing' as const, position: 4 });
    const known = fc.oneof(
      { weight: 3, arbitrary: all },
      fc.record({ differsIn: field, position: fc.integer({ min: 1, max: 4 }) }),
    );
    // As seen from the event: the one at -1 is its own.
    const gap = fc.oneof(
      fc.record({ differsIn: field, from: fc.constant(-1) }),
      fc.record({ differsIn: fc.constant('nothing' as const), from: fc.integer({ min: -2, max: 1 }) }),
    );
    await fc.assert(
      fc.asyncProperty(
        sequence,
        fc.option(known),
        fc.option(gap),
        fc.boolean(),
        fc.constantFrom(143, 145, 145),
        fc.constantFrom(1, 2),
        async (one, progress, missed, isTakenByOther, ageHours, attempt) => {
          await clear();
          const event = eventOf(one, ageHours);
          if (progress) await hasAll({ ...beside(one, progress.differsIn), position: progress.position });
          if (missed) await lacks(beside(one, missed.differsIn), one.position + missed.from);
          if (isTakenByOther) await take(beside(one, 'consumer').consumer, event, 1);
          const rows = async () =>
            (await app.get(DataSource).query<object[]>('SELECT FROM inbox WHERE consumer = $1', [one.consumer])).length;
          const isKnown = progress?.differsIn === 'nothing' && progress.position >= one.position;
          const isMissed = missed?.differsIn === 'nothing' && missed.from === -1;
          const isCopy = isKnown && !isMissed && ageHours > 144;
          expect(await take(one.consumer, event, attempt)).toBe(!isCopy);
          for (const again of [1, 2]) expect(await take(one.consumer, event, again)).toBe(false);
          // For a copy no row is left.
          expect(await rows()).toBe(isCopy ? 0 : 1);
        },
      ),
      runs(150),
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
