import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DatabaseModule, newId, Transactions } from '@atoll/database';
import { createDatabase, expectErrors, type TestDatabase } from '@atoll/testing';
import { Logger, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource, type EntityManager, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DomainEvent, Outcome } from './courier.js';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { defaultRetryRules, Inbox } from './inbox.js';
import { Tries } from './tries.js';
import { orderPlaced } from './world/shop-fixture.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'mail');
  }
  async down(): Promise<void> {}
}

const maxTries = 3;
let database: TestDatabase;
let app: INestApplicationContext;
/** Of two replicas. */
let inboxes: Inbox[];
beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'mail', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options), { abortOnError: false });
  const rules = { ...defaultRetryRules, maxTries, goneAfterMs: 1 };
  // Neither has a session of a relay: what is asked of the other’s tries is as if it lived.
  inboxes = [newId(), newId()].map((id) => new Inbox(app.get(Transactions), app.get(DataSource), rules, id));
});
beforeEach(async () => {
  await sql('TRUNCATE inbox, event_progress, dead_letter');
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

const sql = (statement: string, values: unknown[] = []) => app.get(DataSource).query<object[]>(statement, values);
const dead = () => sql('SELECT event_id, tries, last_error FROM dead_letter');
const triesOf = async ({ id }: DomainEvent) =>
  ((await sql('SELECT tries FROM inbox WHERE event_id = $1', [id]))[0] as { tries: number }).tries;

function eventAt(position: number): DomainEvent {
  const occurredAt = new Date().toISOString();
  return {
    id: newId(),
    name: orderPlaced.name,
    payload: { number: 1 },
    occurredAt,
    publisher: 'orders',
    position,
    previous: position - 1,
  };
}

const attempts = new Map<string, number>();
async function take(
  event: DomainEvent,
  run: (manager: EntityManager) => Promise<unknown>,
  replica = 0,
): Promise<Outcome> {
  const attempt = (attempts.get(event.id) ?? 0) + 1;
  attempts.set(event.id, attempt);
  // The try before was cut short or has failed, in a process that lives.
  await sql('UPDATE inbox SET begun_by = NULL WHERE event_id = $1', [event.id]);
  const effect = {
    type: orderPlaced,
    run: async (_payload: object, { manager }: { manager: EntityManager }) => void (await run(manager)),
  };
  return inboxes[replica]!.take('letters', effect, event, attempt);
}
const well = () => Promise.resolve();
const tooLong = (manager: EntityManager) => manager.query(`SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(600)`);
const waitsForLock = (manager: EntityManager) => manager.query(`SET LOCAL lock_timeout = '1ms'; LOCK TABLE event_gap`);
const beAnHourOld = () => sql(`UPDATE inbox SET received_at = now() - interval '61 minutes'`);

describe('an event whose effect takes longer than the database allows', () => {
  it('is a dead letter after its tries, where later events had their effect between them, by whatever replica', async () => {
    expectErrors(
      /is a dead letter after 3 tries: A statement of the effect took longer than the database allows \(57014\)/,
    );
    const event = eventAt(1);
    await take(event, tooLong);
    for (let failed = 0; failed < maxTries; failed += 1) {
      expect([await triesOf(event), await dead()]).toEqual([failed, []]);
      expect(await take(eventAt(2 + failed), well, 1)).toBe('done');
      const outcome = await take(event, tooLong, failed % 2);
      if (failed < maxTries - 1) expect(outcome).toMatchObject({ reason: expect.stringContaining('57014') });
      else expect(outcome).toBe('done');
    }
    expect(await dead()).toMatchObject([
      { event_id: event.id, tries: maxTries, last_error: expect.stringContaining('57014') },
    ]);
  });

  it('is done where another process has taken it meanwhile', async () => {
    const event = eventAt(1);
    const { timedOut } = Tries.prototype;
    jest.spyOn(Tries.prototype, 'timedOut').mockImplementationOnce(async function (this: Tries, ...given) {
      expect(await take(event, well, 1)).toBe('done');
      return timedOut.apply(this, given);
    });
    expect(await take(event, tooLong)).toBe('done');
  });

  it('is no dead letter where nothing had its effect since it was last tried: a database that is slow is slow for all', async () => {
    const event = eventAt(1);
    await take(event, tooLong);
    await take(eventAt(2), well);
    for (let tries = 0; tries < 2 * maxTries; tries += 1) await take(event, tooLong);
    expect([await triesOf(event), await dead()]).toEqual([1, []]);
    expect(await take(event, well)).toBe('done');
  });

  it('is none either where a later one is a dead letter itself', async () => {
    expectErrors(/is a dead letter after 1 tries: InvalidPayload/);
    const event = eventAt(1);
    for (let tries = 0; tries < 2 * maxTries; tries += 1) {
      await take(event, tooLong);
      await take({ ...eventAt(2 + tries), payload: { number: 'many' } }, well);
    }
    expect([await triesOf(event), (await dead()).length]).toEqual([0, 2 * maxTries]);
  });

  it('is a dead letter in the end where no other event comes, once it has waited for an hour', async () => {
    expectErrors(/is a dead letter after 3 tries: A statement/);
    const event = eventAt(1);
    for (let tries = 0; tries < 2 * maxTries; tries += 1) await take(event, tooLong);
    expect(await triesOf(event)).toBe(0);
    await beAnHourOld();
    for (let tries = 0; tries < maxTries; tries += 1) await take(event, tooLong);
    expect(await dead()).toHaveLength(1);
  });

  it('is none where all that come time out, however long that lasts', async () => {
    const events = [1, 2, 3].map(eventAt);
    for (const event of events) await take(event, tooLong);
    await beAnHourOld();
    for (let tries = 0; tries < 2 * maxTries; tries += 1)
      for (const event of events) await take(event, tooLong, tries % 2);
    expect([await Promise.all(events.map(triesOf)), await dead()]).toEqual([[0, 0, 0], []]);
    for (const event of events) expect(await take(event, well)).toBe('done');
  });
});

describe('an event whose effect waits for a lock of others', () => {
  it('is told from one that takes too long: from its second try on it waits for half of the time of a statement', async () => {
    const event = eventAt(1);
    const found: unknown[] = [];
    const look = async (manager: EntityManager) => {
      const [limits] = await manager.query<object[]>(
        `SELECT current_setting('lock_timeout') AS lock,
           2 * current_setting('lock_timeout')::interval = current_setting('statement_timeout')::interval AS is_half`,
      );
      found.push(limits);
      throw new Error('Not yet.');
    };
    for (let tries = 0; tries < 2; tries += 1) await take(event, look);
    expect(found).toEqual([
      { lock: '0', is_half: false },
      { lock: expect.not.stringMatching(/^0$/), is_half: true },
    ]);
  });

  it('is no dead letter, however often that is in vain and others have their effect', async () => {
    const runner = app.get(DataSource).createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE event_gap IN ACCESS SHARE MODE');
    const event = eventAt(1);
    await take(event, tooLong);
    for (let tries = 0; tries < 2 * maxTries; tries += 1) {
      await take(eventAt(2 + tries), well);
      expect(await take(event, waitsForLock)).toMatchObject({ reason: expect.stringContaining('unavailable') });
    }
    await runner.rollbackTransaction();
    await runner.release();
    expect([await triesOf(event), await dead()]).toEqual([0, []]);
    expect(await take(event, waitsForLock)).toBe('done');
  });
});
