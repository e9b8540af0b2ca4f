import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DatabaseModule, newId, Transactions } from '@atoll/database';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { DomainEvent } from './courier.js';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { RelaySession } from './relay-session.js';
import { Tries } from './tries.js';
import { eventually } from './world/eventually-fixture.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'tries');
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
let app: INestApplicationContext;
const sessions: RelaySession[] = [];
beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'tries', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options));
});
afterAll(async () => {
  for (const session of sessions) await session.close();
  await app.close();
  await database.drop();
});

function triesOf(processId: string, goneAfterMs = 1): Tries {
  return new Tries(app.get(Transactions), app.get(DataSource), processId, goneAfterMs);
}

function openSession(processId: string): Promise<RelaySession> {
  return RelaySession.open(app.get(DataSource), { processId, maxSilenceMs: 60_000 }, () => undefined);
}

async function live(processId: string): Promise<RelaySession> {
  const session = await openSession(processId);
  sessions.push(session);
  return session;
}

/** An event of a release without positions. */
function newEvent(): DomainEvent {
  return { id: newId(), name: 'orders.placed', payload: {}, occurredAt: new Date().toISOString() };
}

async function begin(tries: Tries, event: DomainEvent): Promise<number | 'taken'> {
  let begun: number | 'taken' = 'taken';
  await eventually(async () => {
    const one = await tries.begin('letters', event);
    if (one === 'undecided') throw new Error('undecided');
    begun = one;
  });
  return begun;
}

describe('the tries of an event', () => {
  it('count when they failed, and when their process has ended', async () => {
    const [event, ended, next] = [newEvent(), newId(), newId()];
    expect(await begin(triesOf(ended), event)).toBe(0);
    expect(await triesOf(ended).failed('letters', event)).toBe(1);
    expect(await begin(triesOf(ended), event)).toBe(1);
    expect(await triesOf(next).begin('letters', event)).toBe('undecided');
    expect(await begin(triesOf(next), event)).toBe(2);
  });

  it('do not count where their process lives, goes on itself, or was interrupted', async () => {
    const [event, frozen, next] = [newEvent(), newId(), newId()];
    await live(frozen);
    expect(await begin(triesOf(frozen), event)).toBe(0);
    expect(await triesOf(next).begin('letters', event)).toBe(0);
    expect(await triesOf(next).begin('letters', event)).toBe(0);
    await triesOf(next).interrupted('letters', event.id);
    expect(await triesOf(newId()).begin('letters', event)).toBe(0);
  });

  it('do not count where their process was without its session for a moment', async () => {
    const [event, cutOff, next] = [newEvent(), newId(), newId()];
    const patience = 600_000;
    expect(await triesOf(cutOff).begin('letters', event)).toBe(0);
    expect(await triesOf(next, patience).begin('letters', event)).toBe('undecided');
    expect(await triesOf(next, patience).begin('letters', event)).toBe('undecided');
    await live(cutOff);
    expect(await triesOf(next, patience).begin('letters', event)).toBe(0);
  });

  it('end when the event is taken', async () => {
    const event = newEvent();
    const tries = triesOf(newId());
    expect(await tries.begin('letters', event)).toBe(0);
    await app.get(DataSource).query('UPDATE inbox SET taken_at = now() WHERE event_id = $1', [event.id]);
    expect(await tries.begin('letters', event)).toBe('taken');
    expect(await tries.failed('letters', event)).toBe('taken');
  });
});

describe('a try that timed out', () => {
  const never = { mayCount: true, aloneForMs: 3_600_000 };
  /** The third of a sequence of its own. */
  const third = () => ({ ...newEvent(), publisher: `orders-${newId()}`, position: 3, previous: 2 });
  type Numbered = ReturnType<typeof third>;
  async function take(event: Numbered, consumer = 'letters'): Promise<void> {
    await triesOf(newId()).begin(consumer, event);
    await app
      .get(DataSource)
      .query('UPDATE inbox SET taken_at = now() WHERE event_id = $1 AND consumer = $2', [event.id, consumer]);
  }
  const later = (event: Numbered): Numbered => ({ ...event, id: newId(), position: 4, previous: 3 });
  /** Whether a second time-out counts, after what comes between the two. */
  async function counts(event: Numbered, between: (event: Numbered) => Promise<void>, rules = never): Promise<boolean> {
    const tries = triesOf(newId());
    expect(await tries.timedOut('letters', event, rules)).toEqual({ tries: 0, counts: false });
    await between(event);
    const found = await tries.timedOut('letters', event, rules);
    return found !== 'taken' && found.counts && found.tries === 1;
  }

  it('counts where a later event of its sequence has had its effect since', async () => {
    expect(await counts(third(), (event) => take(later(event)))).toBe(true);
  });

  it.each<[string, (event: Numbered) => Promise<void>]>([
    ['nothing', () => Promise.resolve()],
    ['an earlier event', (event) => take({ ...event, id: newId(), position: 2, previous: 1 })],
    ['a later event of another publisher', (event) => take({ ...later(event), publisher: `other-${newId()}` })],
    ['a later event of another name', (event) => take({ ...later(event), name: 'orders.paid' })],
    ['a later event, at another consumer', (event) => take(later(event), 'statistics')],
    [
      'a later event that is a dead letter',
      async (event) => {
        const lost = later(event);
        await take(lost);
        await app.get(DataSource).query(
          `INSERT INTO dead_letter (id, consumer, event_id, event_name, payload, occurred_at, last_error, tries, first_failed_at, last_failed_at)
           VALUES (gen_random_uuid(), 'letters', $1, $2, '{}', now(), 'no stamps', 3, now(), now())`,
          [lost.id, lost.name],
        );
      },
    ],
  ])('does not count where %s had its effect since', async (_, between) => {
    expect(await counts(third(), between)).toBe(false);
  });

  it('does not count where the later one had its effect before', async () => {
    const event = third();
    await take(later(event));
    expect(await counts(event, () => Promise.resolve())).toBe(false);
  });

  it('counts where it waits for long, and no other event of its consumer times out', async () => {
    await app.get(DataSource).query('DELETE FROM inbox');
    const alone = { mayCount: true, aloneForMs: -1 };
    const timesOut = (consumer: string) => async () => void (await triesOf(newId()).timedOut(consumer, third(), alone));
    expect(await counts(third(), timesOut('statistics'), alone)).toBe(true);
    expect(await counts(third(), timesOut('letters'), alone)).toBe(false);
  });

  it('does not count where none may', async () => {
    const none = { mayCount: false, aloneForMs: -1 };
    expect(await counts(third(), (event) => take(later(event)), none)).toBe(false);
  });
});

it('a session that has ended gives its connection back to the pool', async () => {
  const dataSource = app.get(DataSource);
  // More than the pool has.
  for (let at = 0; at < 30; at += 1) await (await openSession(newId())).close();
  expect(await dataSource.query<object[]>('SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

describe('a session that cannot be opened', () => {
  it('leaves no connection behind', async () => {
    const dataSource = app.get(DataSource);
    const connections = async () =>
      (await dataSource.query<object[]>(`SELECT FROM pg_stat_activity WHERE datname = current_database()`)).length;
    // One of the pool, which looks.
    const before = await connections();
    // PostgreSQL takes no text with a zero byte.
    for (let at = 0; at < 3; at += 1) await expect(openSession('\0')).rejects.toThrow();
    await eventually(async () => expect(await connections()).toBeLessThanOrEqual(before));
  });
});
