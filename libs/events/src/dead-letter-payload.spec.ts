import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { event as eventType, ListOf, Nested, Text } from '@atoll/contracts';
import { DatabaseModule, newId, Transactions } from '@atoll/database';
import { createDatabase, expectErrors, runs, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { DeadLetters } from './dead-letters.js';
import type { EventConsumers } from './event-consumers.js';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { defaultRetryRules, Inbox } from './inbox.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'mail');
  }
  async down(): Promise<void> {}
}

class Line {
  @Text({ max: 5 })
  text!: string;
}
class Letter {
  @ListOf(() => Line, { max: 2 })
  lines!: Line[];

  @Nested(() => Line, { optional: true })
  address?: Line;
}
const letterSent = eventType('orders.letter_sent', Letter);

let database: TestDatabase;
let app: INestApplicationContext;
let inbox: Inbox;
/** What the effect was run with, and whether it can do its work. */
let printed: Letter[];
let hasPaper: boolean;

beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'mail', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options), { abortOnError: false });
  inbox = new Inbox(app.get(Transactions), app.get(DataSource), defaultRetryRules, newId());
});
beforeEach(async () => {
  expectErrors(/letters: orders\.letter_sent .* is a dead letter/);
  [printed, hasPaper] = [[], false];
  await app.get(DataSource).query('TRUNCATE inbox, dead_letter');
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

const effect = {
  type: letterSent,
  run: (letter: object) => {
    if (!hasPaper) throw new Error('the printer is out of paper');
    return Promise.resolve(void printed.push(letter as Letter));
  },
};

function deadLetters(): DeadLetters {
  const all = () => new Map([['letters', new Map([[letterSent.name, effect]])]]);
  return new DeadLetters(app.get(DataSource), app.get(Transactions), { all } as unknown as EventConsumers);
}

/** Delivers it until the consumer has given it up. */
async function giveUp(payload: unknown): Promise<DomainEvent> {
  const event = { id: newId(), name: letterSent.name, payload, occurredAt: new Date().toISOString() };
  for (let attempt = 1; (await inbox.take('letters', effect, event, attempt)) !== 'done';) attempt += 1;
  return event;
}

describe('the dead letter of an event', () => {
  it('law: has the payload that was published, whatever the consumer’s class makes of it', async () => {
    const text = fc.string({ unit: 'grapheme-ascii', maxLength: 7 });
    const line = fc.record({ text, colour: fc.jsonValue({ maxDepth: 2 }) }, { requiredKeys: ['text'] });
    const letter = fc.record(
      { lines: fc.array(line, { maxLength: 4 }), address: fc.oneof(line, fc.array(line)), stamps: fc.jsonValue() },
      { requiredKeys: ['lines'] },
    );
    await fc.assert(
      fc.asyncProperty(letter, async (written) => {
        const published = JSON.stringify(written);
        const { id } = await giveUp(JSON.parse(published));
        const found = (await deadLetters().list()).find(({ eventId }) => eventId === id);
        expect(found?.payload).toEqual(JSON.parse(published));
      }),
      runs(60),
    );
  });

  it('stays with its list where that is still too long at a replay', async () => {
    const payload = { lines: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] };
    await giveUp(payload);
    hasPaper = true;
    const [letter] = await deadLetters().list();
    await expect(deadLetters().retry(letter?.id ?? '')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('lines arrayMaxSize'),
    });
    expect(await deadLetters().list()).toMatchObject([{ id: letter?.id, payload }]);
    expect(printed).toEqual([]);
  });
});
