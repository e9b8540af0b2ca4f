import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { aDayThatLasts, createDatabase, type TestDatabase } from '@atoll/testing';
import { DataSource, type QueryRunner } from 'typeorm';
import { createEventTables } from './event-tables.js';
import { numberAndFetch } from './numbering.js';
import { keepPublished, renewPartitions } from './published-partitions.js';

let database: TestDatabase;
let dataSource: DataSource;
let runner: QueryRunner;

beforeAll(async () => {
  database = await createDatabase();
  const extra = { options: '-c search_path=numbers' };
  dataSource = await new DataSource({
    type: 'postgres',
    url: database.url,
    schema: 'numbers',
    extra,
    poolSize: 10,
  }).initialize();
  runner = dataSource.createQueryRunner();
});
afterEach(async () => {
  await runner.query('DROP SCHEMA numbers CASCADE');
});
afterAll(async () => {
  await runner.release();
  await dataSource.destroy();
  await database.drop();
});

async function create(): Promise<void> {
  await runner.query('CREATE SCHEMA numbers');
  await createEventTables(runner, 'numbers');
  await renewPartitions(runner);
}

interface Numbered {
  id: string;
  name: string;
  position: number;
  previous: number;
  payload: { object: number; version: number };
}
const fetchNext = (limit = 1000, inHand: string[] = []): Promise<Numbered[]> =>
  runner.query(numberAndFetch, [limit, inHand, new Date(0)]) as Promise<Numbered[]>;
const add = (client: QueryRunner, name: string, payload: object) =>
  client.query('INSERT INTO numbers.outbox (id, event_name, payload) VALUES ($1, $2, $3)', [
    randomUUID(),
    name,
    JSON.stringify(payload),
  ]);

describe('the positions of events', () => {
  it('have no gap and never invert two events of one object, whatever order writers commit in, and how many roll back', async () => {
    await create();
    await runner.query('CREATE TABLE numbers.object (id integer PRIMARY KEY, version integer NOT NULL DEFAULT 0)');
    await runner.query('INSERT INTO numbers.object (id) SELECT generate_series(0, 3)');
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      const client = dataSource.createQueryRunner();
      for (let turn = 0; turn < 40; turn += 1) {
        const object = (writer + turn) % 4;
        await client.query('BEGIN');
        // A transaction id of its own before it waits for the object: an order by transactions would invert.
        await client.query('SELECT pg_current_xact_id()');
        const [rows] = (await client.query(
          'UPDATE numbers.object SET version = version + 1 WHERE id = $1 RETURNING version',
          [object],
        )) as [{ version: number }[]];
        await add(client, `numbers.name${turn % 3}`, { object, version: rows[0]?.version });
        if (turn % 5 === 0) await client.query('SELECT pg_sleep(0.003)');
        await client.query(turn % 9 === 8 ? 'ROLLBACK' : 'COMMIT');
      }
      await client.release();
    });
    const seen: Numbered[] = [];
    let writing = true;
    const written = Promise.all(writers).then(() => (writing = false));
    for (let last = false; !last;) {
      last = !writing;
      const fetched = await fetchNext(7);
      seen.push(...fetched);
      await runner.query(keepPublished, [fetched.map(({ id }) => id)]);
      last &&= fetched.length === 0;
    }
    await written;
    expect(seen.map(({ position }) => position)).toEqual(seen.map((_, index) => index + 1));
    for (let object = 0; object < 4; object += 1) {
      const versions = seen.filter(({ payload }) => payload.object === object).map(({ payload }) => payload.version);
      expect(versions).toEqual(versions.toSorted((one, other) => one - other));
    }
    for (const name of ['numbers.name0', 'numbers.name1', 'numbers.name2']) {
      const ofName = seen.filter((event) => event.name === name);
      expect(ofName.map(({ previous }) => previous)).toEqual(
        [0, ...ofName.map(({ position }) => position)].slice(0, -1),
      );
    }
  });

  it('are given to a writer that began after the relay and committed before it looked', async () => {
    await create();
    await add(runner, 'numbers.name', { version: 1 });
    await add(runner, 'numbers.name', { version: 2 });
    // The first has the time of a transaction that began later than the statement that sees it.
    await runner.query(`UPDATE outbox SET next_attempt_at = now() + interval '1 hour' WHERE payload->>'version' = '1'`);
    expect((await fetchNext()).map(({ position, payload }) => [position, payload.version])).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it('stay what they are when an event is handed out again', async () => {
    await create();
    for (let number = 0; number < 3; number += 1) await add(runner, 'numbers.name', { number });
    const first = await fetchNext(2);
    const again = await fetchNext();
    expect(again.slice(0, 2)).toEqual(first);
    expect(again.map(({ position, previous }) => [position, previous])).toEqual([
      [1, 0],
      [2, 1],
      [3, 2],
    ]);
    expect(
      await fetchNext(
        1000,
        again.slice(0, 2).map(({ id }) => id),
      ),
    ).toEqual(again.slice(2));
  });
});

describe('what was published', () => {
  it('is kept for days, a partition each, and then dropped', async () => {
    await aDayThatLasts();
    await create();
    const days = (await runner.query(`SELECT (now() AT TIME ZONE 'UTC')::date::text AS today`)) as { today: string }[];
    const nameOf = (offset: number) =>
      `outbox_published_${new Date(Date.parse(days[0]?.today ?? '') + offset * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}`;
    const names = async () =>
      (
        (await runner.query(
          `SELECT relname FROM pg_class WHERE relname LIKE 'outbox_published_2%' AND relkind = 'r' ORDER BY 1`,
        )) as {
          relname: string;
        }[]
      ).map(({ relname }) => relname);
    expect(await names()).toEqual([nameOf(0), nameOf(1), nameOf(2)]);
    for (const offset of [-7, -8]) {
      const [day, next] = [nameOf(offset).slice(-8), nameOf(offset + 1).slice(-8)];
      await runner.query(
        `CREATE TABLE ${nameOf(offset)} PARTITION OF outbox_published FOR VALUES FROM ('${day} 00:00+00') TO ('${next} 00:00+00')`,
      );
    }
    await renewPartitions(runner);
    expect(await names()).toEqual([nameOf(-7), nameOf(0), nameOf(1), nameOf(2)]);
  });
});
