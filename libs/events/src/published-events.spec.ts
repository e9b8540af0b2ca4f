import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { EventsAfter } from '@atoll/contracts';
import { DatabaseModule, newId } from '@atoll/database';
import { createDatabase, runs, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { eventEntities } from './event-entities.js';
import { createEventTables } from './event-tables.js';
import { PublishedEvents } from './published-events.js';

class Tables1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await createEventTables(runner, 'log');
    // Events of whatever day.
    await runner.query('CREATE TABLE log.outbox_published_rest PARTITION OF log.outbox_published DEFAULT');
  }
  async down(): Promise<void> {}
}

let database: TestDatabase;
let app: INestApplicationContext;
let published: PublishedEvents;
beforeAll(async () => {
  database = await createDatabase();
  const options = { schema: 'log', url: database.url, entities: eventEntities, migrations: [Tables1700000000000] };
  app = await NestFactory.createApplicationContext(DatabaseModule.forRoot(options), { abortOnError: false });
  published = new PublishedEvents(app.get(DataSource));
});
beforeEach(() => app.get(DataSource).query('TRUNCATE outbox, outbox_published, event_head'));
afterAll(async () => {
  await app.close();
  await database.drop();
});

/**
 * Where an event is that got the next position: waiting for the courier, published just now or a while ago, or
 * forgotten.
 */
type Place = 'waiting' | 'fresh' | 'kept' | 'forgotten';
interface Told {
  name: string;
  place: Place;
}
interface Numbered extends Told {
  position: number;
  previous: number;
}

const graceMs = 600_000;
const names = ['shop.opened', 'shop.closed'];

async function write(all: readonly Told[], payload: object = {}): Promise<Numbered[]> {
  const heads = new Map<string, number>();
  const numbered = all.map((told, at) => {
    const previous = heads.get(told.name) ?? 0;
    heads.set(told.name, at + 1);
    return { ...told, position: at + 1, previous };
  });
  const query = (sql: string, values: unknown[]) => app.get(DataSource).query(sql, values);
  for (const { name, place, position, previous } of numbered) {
    const values = [newId(), name, payload, position, previous];
    if (place === 'waiting') {
      await query(
        'INSERT INTO outbox (id, event_name, payload, position, previous) VALUES ($1, $2, $3, $4, $5)',
        values,
      );
    } else if (place !== 'forgotten') {
      await query(
        `INSERT INTO outbox_published (id, event_name, payload, position, previous, occurred_at, published_at)
         VALUES ($1, $2, $3, $4, $5, now(), now() - $6 * interval '1 millisecond')`,
        [...values, place === 'kept' ? 2 * graceMs : 0],
      );
    }
  }
  for (const [name, position] of heads)
    await query('INSERT INTO event_head (event_name, position) VALUES ($1, $2)', [name, position]);
  return numbered;
}

const ask = (asked: Partial<EventsAfter>) =>
  published.read({ event_name: names[0] ?? '', after: 0, published_before_ms: graceMs, ...asked });

const told = fc.record<Told>({
  name: fc.constantFrom(...names),
  place: fc.constantFrom('waiting', 'fresh', 'kept', 'forgotten'),
});

describe('what a service has published', () => {
  it('law: is told from what it keeps: the events of a range, what was forgotten before them, and whether there are none', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(told, { maxLength: 10 }),
        fc.integer({ min: 0, max: 11 }),
        fc.option(fc.integer({ min: 0, max: 11 }), { nil: undefined }),
        async (all, after, upTo) => {
          await app.get(DataSource).query('TRUNCATE outbox, outbox_published, event_head');
          const ofName = (await write(all)).filter(({ name }) => name === names[0]);
          const known = ofName.filter(({ place }) => place !== 'forgotten');
          const inRange = known.filter(({ position }) => position > after && position <= (upTo ?? Infinity));
          const { events, forgotten_up_to, has_none } = await ask({
            after,
            ...(upTo !== undefined && { up_to: upTo }),
          });
          expect(events.map(({ position, previous }) => [position, previous])).toEqual(
            inRange.filter(({ place }) => place === 'kept').map(({ position, previous }) => [position, previous]),
          );
          // Who has everything up to `after` need not know what of that is kept.
          const forgotten = known[0]?.previous ?? ofName.at(-1)?.position ?? 0;
          expect(Math.max(forgotten_up_to, after)).toBe(Math.max(forgotten, after));
          expect(has_none).toBe(inRange.length === 0);
        },
      ),
      runs(60),
    );
  });

  it('says of each event what request it came of, where that is known', async () => {
    await write([1, 2].map(() => ({ name: names[0] ?? '', place: 'kept' })));
    await app
      .get(DataSource)
      .query(`UPDATE outbox_published SET request_id = 'request-1', traceparent = '00-1-2-01' WHERE position = 2`);
    const told = (await ask({})).events.map(({ id: _id, occurred_at: _at, ...event }) => event);
    expect(told).toEqual([
      { position: 1, previous: 0, payload: {} },
      { position: 2, previous: 1, payload: {}, request_id: 'request-1', traceparent: '00-1-2-01' },
    ]);
  });

  it('comes in pages of 200, whose payloads have at most 1 MiB', async () => {
    await write(Array.from({ length: 201 }, () => ({ name: names[0] ?? '', place: 'kept' })));
    const first = await ask({});
    expect(first.events).toHaveLength(200);
    expect((await ask({ after: first.events.at(-1)?.position ?? 0 })).events.map(({ position }) => position)).toEqual([
      201,
    ]);
  });

  describe('of which there is very much', () => {
    beforeEach(async () => {
      const query = (sql: string, values?: unknown[]) => app.get(DataSource).query(sql, values);
      const columns = 'id, event_name, payload, position, previous, occurred_at';
      const values = `gen_random_uuid(), $1, '{}', number, number - 1, now()`;
      await query(
        `INSERT INTO outbox_published (${columns}, published_at)
         SELECT ${values}, now() - interval '1 day' FROM generate_series(1, 5000) number`,
        [names[0]],
      );
      await query(`INSERT INTO outbox (${columns}) SELECT ${values} FROM generate_series(5001, 6000) number`, [
        names[0],
      ]);
      await query('INSERT INTO event_head (event_name, position) VALUES ($1, 6000)', [names[0]]);
      await query('ANALYZE outbox_published, outbox');
    });

    /** A page, and how many rows of each table were read for it. */
    const pageAfter = (after: number, plan: 'generic' | 'custom' = 'generic') =>
      app.get(DataSource).transaction(async (manager) => {
        await manager.query(`SET LOCAL plan_cache_mode = force_${plan}_plan`);
        const read = async () => {
          const [rows] = await manager.query<[{ published: number; waiting: number }]>(
            `SELECT sum(read) FILTER (WHERE relname = 'outbox')::float8 AS waiting,
                    sum(read) FILTER (WHERE relname = 'outbox_published_rest')::float8 AS published
             FROM (SELECT relname, seq_tup_read + COALESCE(idx_tup_fetch, 0) AS read FROM pg_stat_xact_user_tables) each`,
          );
          return rows;
        };
        const before = await read();
        const inTransaction = new PublishedEvents({ query: manager.query.bind(manager) } as unknown as DataSource);
        const page = await inTransaction.read({ event_name: names[0] ?? '', after, published_before_ms: graceMs });
        const { published, waiting } = await read();
        return { ...page, published: published - before.published, waiting: waiting - before.waiting };
      });

    // A plan is made for the values at first, and later for any.
    it.each([
      [100, 'generic'],
      [100, 'custom'],
      [3000, 'custom'],
    ] as const)(
      'reads no more rows for the page after %i than it has, by a %s plan, and none that wait',
      async (after, plan) => {
        const { events, published, waiting } = await pageAfter(after, plan);
        expect(events.map(({ position }) => position)).toEqual(Array.from({ length: 200 }, (_, at) => after + 1 + at));
        expect(published).toBeGreaterThanOrEqual(200);
        expect(published).toBeLessThanOrEqual(210);
        expect(waiting).toBe(0);
      },
    );

    it('reads none that wait for who has them all', async () => {
      expect(await pageAfter(6000)).toMatchObject({ events: [], has_none: true, waiting: 0 });
    });
  });

  it.each([
    [1_048_576, 2],
    [1_048_577, 1],
    [3_000_000, 1],
  ])('has pages of at most 1 MiB, or of one event: two of %i bytes are %i on the first page', async (bytes, count) => {
    // {"x": "…"}
    const sizes = [Math.floor(bytes / 2), Math.ceil(bytes / 2)];
    await write(
      [
        { name: names[0] ?? '', place: 'kept' },
        { name: names[0] ?? '', place: 'kept' },
      ],
      { x: '' },
    );
    for (const [at, size] of sizes.entries()) {
      await app
        .get(DataSource)
        .query('UPDATE outbox_published SET payload = $2 WHERE position = $1', [
          at + 1,
          { x: 'x'.repeat(size - '{"x": ""}'.length) },
        ]);
    }
    const query = jest.spyOn(app.get(DataSource), 'query');
    expect((await ask({})).events).toHaveLength(count);
    // What is beyond a page stays in the database.
    expect(await query.mock.results[0]?.value).toHaveLength(count);
    query.mockRestore();
  });
});
