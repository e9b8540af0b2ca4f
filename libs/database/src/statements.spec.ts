import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { openBank, type Bank } from './account-fixture.js';
import { Statements } from './statements.js';

let bank: Bank;
let statements: Statements;
beforeAll(async () => {
  // One connection, whose plans can be looked at.
  bank = await openBank({ poolSize: 1 });
  statements = new Statements(bank.dataSource);
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => bank.close());

const backend = async () => (await statements.query<{ pid: number }>('SELECT pg_backend_pid() AS pid', []))[0]?.pid;

it('a table that fills is no longer read from end to end five seconds later, though nobody has analysed it', async () => {
  const text = 'SELECT count(*) FROM few WHERE number = 2';
  await bank.dataSource.query('CREATE TABLE few (number int PRIMARY KEY)');
  await bank.dataSource.query('INSERT INTO few VALUES (1), (2), (3)');
  await bank.dataSource.query('ANALYZE few');
  const nowMs = performance.now();
  const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
  const plan = async () => {
    for (let times = 0; times < 3; times += 1) expect(await statements.query(text, [])).toEqual([{ count: '1' }]);
    const [{ name = '' } = {}] = await bank.dataSource.query<{ name: string }[]>(
      `SELECT name FROM pg_prepared_statements WHERE statement = '${text}'`,
    );
    const lines = await bank.dataSource.query<{ 'QUERY PLAN': string }[]>(`EXPLAIN EXECUTE "${name}"`);
    return lines.map((line) => line['QUERY PLAN']).join('\n');
  };
  expect(await plan()).toContain('Seq Scan');
  await bank.dataSource.query('INSERT INTO few SELECT n FROM generate_series(4, 50000) n');
  clock.mockReturnValue(nowMs + 60_000);
  expect(await plan()).toMatch(/Index Only Scan|Index Scan|Bitmap Heap Scan/);
});

it('a statement that PostgreSQL refuses leaves its connection good for the next one', async () => {
  const before = await backend();
  await expect(statements.query('SELECT 1 / $1::int AS one', [0])).rejects.toThrow('division by zero');
  expect(await backend()).toBe(before);
});

it('a connection that is gone is not used again', async () => {
  const before = await backend();
  await expect(statements.query('SELECT pg_terminate_backend(pg_backend_pid())', [])).rejects.toMatchObject({
    code: 'unavailable',
  });
  expect(await backend()).not.toBe(before);
});
