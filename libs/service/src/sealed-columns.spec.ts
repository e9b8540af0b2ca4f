import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { createDatabase, type TestDatabase } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { resealColumn, type SealedColumn } from './sealed-columns.js';

const place: SealedColumn = {
  table: 'safe',
  column: 'sealed',
  purposeBy: ['shelf', 'no'],
  purposeOf: (shelf, no) => `safe:${shelf}/${no}`,
};
const [old, fresh] = [Sealer.createKeys('old'), Sealer.createKeys('new')];
const [before, rotated, after] = [new Sealer(old), new Sealer(`${fresh},${old}`), new Sealer(fresh)];

let database: TestDatabase;
let client: DataSource;
let rows: ReturnType<typeof rowsOf>;
beforeAll(async () => {
  database = await createDatabase();
  client = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  rows = rowsOf(client);
  await client.query('CREATE TABLE safe (shelf text, no integer, sealed text)');
});
beforeEach(() => client.query('TRUNCATE safe'));
afterAll(async () => {
  await client.destroy();
  await database.drop();
});

const put = (sealer: Sealer, no: number, secret: string) =>
  client.query('INSERT INTO safe VALUES ($1, $2, $3)', ['a', no, sealer.seal(secret, `safe:a/${no}`)]);
const opened = async (sealer: Sealer) =>
  (await rows.query<{ no: number; sealed: string }>(`SELECT no, sealed FROM safe WHERE sealed <> '' ORDER BY no`)).map(
    ({ no, sealed }) => sealer.open(sealed, `safe:a/${no}`).toString(),
  );

describe('sealing again under the first key', () => {
  it('leaves nothing that needs another key, whatever the number of rows', async () => {
    const many = 2_500;
    const values = Array.from({ length: many }, (_, no) => before.seal(`secret ${no}`, `safe:a/${no}`));
    await client.query(
      `INSERT INTO safe SELECT 'a', no - 1, sealed FROM unnest($1::text[]) WITH ORDINALITY AS s (sealed, no)`,
      [values],
    );
    await client.query(`INSERT INTO safe VALUES ('a', -1, NULL), ('a', -2, '')`);
    await put(rotated, many, 'of the new key');
    expect(await resealColumn(place, rotated, rows)).toEqual({
      table: 'safe',
      column: 'sealed',
      resealed: many,
      unopened: [],
    });
    expect(await opened(after)).toEqual([...values.map((_, no) => `secret ${no}`), 'of the new key']);
    expect((await resealColumn(place, rotated, rows)).resealed).toBe(0);
  });

  it('leaves what no key opens as it is, and names its row without its content', async () => {
    await put(before, 1, 'hunter2');
    await put(new Sealer(Sealer.createKeys('lost')), 2, 'hunter3');
    const moved = before.seal('hunter4', 'safe:b/3');
    await client.query(`INSERT INTO safe VALUES ('a', 3, $1)`, [moved]);
    const { resealed, unopened } = await resealColumn(place, rotated, rows);
    expect([resealed, unopened.map(({ row }) => row).toSorted()]).toEqual([1, ['a, 2', 'a, 3']]);
    expect(JSON.stringify(unopened)).toMatch(/\\"lost\\".*ATOLL_SEAL_KEYS/);
    expect(JSON.stringify(unopened)).not.toContain(moved);
    expect(await rows.query('SELECT FROM safe WHERE sealed = $1', [moved])).toHaveLength(1);
  });

  it('names each row whose value the first key sealed with other bytes, whatever their number, and changes none', async () => {
    const many = 2_500;
    const wrong = new Sealer(Sealer.createKeys('old'));
    await client.query(
      `INSERT INTO safe SELECT 'a', no - 1, sealed FROM unnest($1::text[]) WITH ORDINALITY AS s (sealed, no)`,
      [Array.from({ length: many }, (_, no) => before.seal('hunter2', `safe:a/${no}`))],
    );
    await put(wrong, many, 'of the other bytes');
    const values = () => rows.query('SELECT no, sealed FROM safe ORDER BY no');
    const kept = await values();
    const { resealed, unopened } = await resealColumn(place, wrong, rows);
    expect(unopened.map(({ row }) => row)).toEqual(Array.from({ length: many }, (_, no) => `a, ${no}`));
    expect(new Set(unopened.map(({ reason }) => reason.slice(reason.indexOf(': '))))).toEqual(
      new Set([
        ': ATOLL_SEAL_KEYS has another key under the id "old" than the one that sealed it, or the value was altered.',
      ]),
    );
    expect([resealed, await values()]).toEqual([0, kept]);
  });

  it('does not undo what a service writes meanwhile', async () => {
    await put(before, 1, 'old password');
    const meanwhile = {
      query: async <Row extends object>(sql: string, values?: unknown[]): Promise<Row[]> => {
        if (sql.startsWith('UPDATE'))
          await client.query('UPDATE safe SET sealed = $1', [rotated.seal('new password', 'safe:a/1')]);
        return rows.query<Row>(sql, values);
      },
    };
    expect((await resealColumn(place, rotated, meanwhile)).resealed).toBe(0);
    expect(await opened(after)).toEqual(['new password']);
  });

  it('takes a table that is not there for an empty one', async () => {
    expect(await resealColumn({ ...place, table: 'nowhere.safe' }, rotated, rows)).toMatchObject({
      resealed: 0,
      unopened: [],
    });
  });
});
