import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { openBank, type Bank } from './account-fixture.js';
import type pg from 'pg';
import { Snapshot } from './snapshot.js';
import { Statements } from './statements.js';

let bank: Bank;
let statements: Statements;
beforeAll(async () => {
  // One connection for snapshots, and one for what is committed beside them.
  bank = await openBank({ poolSize: 2 });
  statements = new Statements(bank.dataSource);
});
beforeEach(() => bank.dataSource.query(`INSERT INTO account VALUES ('ours', 1)`));
afterEach(async () => {
  jest.restoreAllMocks();
  await bank.dataSource.query('DELETE FROM account');
});
afterAll(() => bank.close());

const balance = async (from: Snapshot | Statements) =>
  (await from.query<{ cents: number }>('SELECT balance_in_cents AS cents FROM account WHERE name = $1', ['ours']))[0]
    ?.cents;
const earn = () => bank.dataSource.query('UPDATE account SET balance_in_cents = balance_in_cents + 1');
const backend = 'SELECT pg_backend_pid() AS pid';

it('a snapshot sees what had been committed when its first statement was sent, and nothing of what comes later', async () => {
  const seen = await statements.inSnapshot(async (snapshot) => {
    const first = await balance(snapshot);
    await earn();
    return [first, await balance(snapshot)];
  });
  expect([...seen, await balance(statements)]).toEqual([1, 1, 2]);
});

it('a snapshot changes nothing', async () => {
  const changing = statements.inSnapshot((snapshot) => snapshot.query('DELETE FROM account', []));
  await expect(changing).rejects.toMatchObject({ code: 'unavailable' });
  expect(await balance(statements)).toBe(1);
});

it('work that fails throws its own error, and leaves a connection that sees what is committed after it', async () => {
  let pid: number | undefined;
  const failing = statements.inSnapshot(async (snapshot) => {
    pid = (await snapshot.query<{ pid: number }>(backend, []))[0]?.pid;
    await snapshot.query('SELECT 1 / $1::int AS one', [0]);
  });
  await expect(failing).rejects.toThrow('division by zero');
  await earn();
  const again = await Promise.all(
    [1, 2].map(() =>
      statements.inSnapshot(async (snapshot) => ({
        pid: (await snapshot.query<{ pid: number }>(backend, []))[0]?.pid,
        cents: await balance(snapshot),
      })),
    ),
  );
  expect(again).toContainEqual({ pid, cents: 2 });
});

it('what is still under way when the work of a snapshot has failed sends nothing on a connection that others have', async () => {
  const late = Promise.withResolvers<undefined>();
  let later: Promise<unknown> = late.promise;
  const failing = statements.inSnapshot((snapshot) => {
    later = late.promise.then(() => balance(snapshot));
    return Promise.all([later, Promise.reject(new Error('the other half failed'))]);
  });
  await expect(failing).rejects.toThrow('the other half failed');
  late.resolve(undefined);
  await expect(later).rejects.toThrow('after the end of its snapshot');
});

it('all of the work runs again where a migration has changed what a statement of it returns', async () => {
  await bank.dataSource.query('CREATE TABLE changing AS SELECT 1 AS one');
  const text = 'SELECT * FROM changing WHERE one = $1';
  const ask = (snapshot: Snapshot) => snapshot.query<object>(text, [1]);
  await Promise.all([1, 2].map(() => statements.inSnapshot(ask)));
  await bank.dataSource.query('ALTER TABLE changing ADD COLUMN two int DEFAULT 2');
  let runs = 0;
  const rows = await statements.inSnapshot(async (snapshot) => {
    runs += 1;
    return [await balance(snapshot), ...(await ask(snapshot))];
  });
  expect([runs, ...rows]).toEqual([2, 1, { one: 1, two: 2 }]);
});

it('a snapshot plans its statements anew when they are old, as others do', async () => {
  await statements.inSnapshot(balance);
  const nowMs = performance.now();
  jest.spyOn(performance, 'now').mockReturnValue(nowMs + 60_000);
  expect(await statements.inSnapshot(balance)).toBe(1);
});

it('statements that are asked for at once are sent one after the other, and the end after the one that is under way', async () => {
  const events: string[] = [];
  const client = {
    query: async (statement: string | { text: string }) => {
      const text = typeof statement === 'string' ? statement : statement.text;
      events.push(text);
      await new Promise(setImmediate);
      events.push(`${text} is answered`);
      return { rows: [] };
    },
  } as unknown as pg.ClientBase;
  const answered = (...statements: string[]) => statements.flatMap((text) => [text, `${text} is answered`]);
  const start = 'START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY';
  await Snapshot.of(client, (snapshot) => Promise.all(['one', 'two'].map((text) => snapshot.query(text, []))));
  expect(events.splice(0)).toEqual(answered(start, 'one', 'two', 'COMMIT'));
  const failing = Snapshot.of(client, (snapshot) => {
    const reading = ['one', 'two'].map((text) => snapshot.query(text, []));
    return Promise.all([...reading, Promise.resolve().then(() => Promise.reject(new Error('the other half failed')))]);
  });
  await expect(failing).rejects.toThrow('the other half failed');
  expect(events).toEqual(answered(start, 'one', 'ROLLBACK'));
});
